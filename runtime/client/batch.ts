// Many vectors in one call, at the server's pace.
import { Connection } from "./connection.ts";
import { BATCH_PREDICT, type BatchResult, type Method } from "./messages.ts";
import { Attempts } from "./retry.ts";
import { COUNTS_FRAMES, Sender } from "./sender.ts";
import { boundsOf, callMetadata, type Options, type Target } from "./target.ts";
import { flatValues } from "./tensors.ts";
import type { BatchAnswers, BatchStats, BatchVector } from "./types.ts";

/** The options of a batch with the types of its params erased. */
export interface BatchRequest extends Options {
  readonly onProgress?: ((stats: BatchStats) => void) | undefined;
  readonly retry?: boolean | undefined;
}

type Vectors = Iterable<BatchVector> | AsyncIterable<BatchVector>;

/** Encoded by the sender, which has to know their size. */
const ENCODED: Method<Uint8Array, BatchResult> = { ...BATCH_PREDICT, serialize: (bytes) => bytes };

const PROGRESS_MS = 100;

/** Answers every vector. */
export async function batch(target: Target, vectors: Vectors, options: BatchRequest): Promise<BatchAnswers> {
  if (options.retry && !canBeReadAgain(vectors)) {
    throw new TypeError("Cannot retry a batch: its vectors can be read only once, wanted an array or the like");
  }
  const bounds = boundsOf(target, options);
  const metadata = callMetadata(target, options, bounds.requestId);
  const sendAll = async () => {
    const sender = new Sender();
    // A connection of its own: what it sends can be counted, and other calls do not wait behind it.
    const connection = new Connection({
      ...target.connectionOptions,
      ...COUNTS_FRAMES && { onDataSent: sender.onDataSent },
    });
    try {
      await connect(connection);
      const rpc = connection.open(ENCODED, { ...bounds, metadata });
      sender.attach(rpc);
      const ids: (string | undefined)[] = [];
      const sending = feed(vectors, sender, ids, options.onProgress).then(() => rpc.end());
      sending.catch(() => rpc.cancel());
      const result = await onlyResult(rpc, sending);
      options.onProgress?.(sender.stats);
      return { ...toAnswers(result, ids), stats: sender.stats, requestId: bounds.requestId };
    } finally {
      connection.close();
    }
  };
  // No vector is taken before there is a connection, so that attempt can always be repeated.
  const connect = (connection: Connection) => new Attempts(target.policy, bounds).run(() => connection.ready(bounds));
  return await (options.retry ? new Attempts(target.policy, bounds).run(sendAll) : sendAll());
}

async function feed(
  vectors: Vectors,
  sender: Sender,
  ids: (string | undefined)[],
  onProgress: BatchRequest["onProgress"],
): Promise<void> {
  let told = performance.now();
  for await (const vector of vectors) {
    const { id, features } = "features" in vector ? vector : { id: undefined, features: vector };
    ids.push(id);
    await sender.send(BATCH_PREDICT.serialize({ id: id ?? "", features: flatValues(features).values }));
    if (sender.hasEnded) return;
    if (!onProgress || performance.now() - told < PROGRESS_MS) continue;
    told = performance.now();
    onProgress(sender.stats);
  }
}

// The server may answer, or refuse, while vectors are still to come; a source that fails is what the caller hears of.
async function onlyResult(rpc: AsyncIterable<BatchResult>, sending: Promise<void>): Promise<BatchResult> {
  let result: BatchResult | undefined;
  let failure: { readonly error: unknown } | undefined;
  try {
    for await (const message of rpc) result = message;
  } catch (error) {
    failure = { error };
  }
  await sending;
  if (failure) throw failure.error;
  return result ?? { results: [], total_processed: 0 };
}

function toAnswers({ results }: BatchResult, ids: readonly (string | undefined)[]) {
  return {
    version: results[0]?.model_version ?? "",
    results: results.map(({ output_tensor, latency_ms }, i) => ({
      id: ids[i],
      output: Float32Array.from(output_tensor),
      latencyMs: latency_ms,
    })),
  };
}

// An iterator gives itself when it is asked for one.
function canBeReadAgain(vectors: Vectors): boolean {
  if (Symbol.asyncIterator in vectors) return (vectors[Symbol.asyncIterator]() as unknown) !== vectors;
  return (vectors[Symbol.iterator]() as unknown) !== vectors;
}
