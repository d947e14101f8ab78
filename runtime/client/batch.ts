// Many vectors in one call, at the server's pace.
import { BATCH_PREDICT } from "./messages.ts";
import { boundsOf, type Options, paramMetadata, type Target } from "./target.ts";
import { flatValues } from "./tensors.ts";
import type { BatchAnswers, BatchStats, BatchVector } from "./types.ts";

/** The options of a batch with the types of its params erased. */
export interface BatchRequest extends Options {
  readonly onProgress?: ((stats: BatchStats) => void) | undefined;
  readonly retry?: boolean | undefined;
}

/** Answers every vector. */
export async function batch(
  { connection, model }: Target,
  vectors: Iterable<BatchVector> | AsyncIterable<BatchVector>,
  options: BatchRequest,
): Promise<BatchAnswers> {
  const bounds = boundsOf(options);
  const { requestId } = bounds;
  const metadata = {
    "model-id": model,
    ...paramMetadata(options.params),
    ...options.metadata,
    "request-id": requestId,
  };
  const rpc = connection.open(BATCH_PREDICT, { ...bounds, metadata });
  const started = performance.now();
  const ids: (string | undefined)[] = [];
  const stats = {
    sent: 0,
    bytes: 0,
    inFlight: 0,
    window: 16,
    increases: 0,
    decreases: 0,
    sendMs: 0,
    waitedMs: 0,
  };
  const send = async () => {
    for await (const vector of vectors) {
      if (rpc.hasEnded) return;
      const { id, features } = toVector(vector);
      ids.push(id);
      stats.sent++;
      if (!rpc.write({ id: id ?? "", features })) await rpc.drained();
      stats.sendMs = performance.now() - started;
      if (stats.sent % 256 === 0) options.onProgress?.({ ...stats });
    }
    rpc.end();
  };
  const sending = send();
  sending.catch(() => rpc.cancel());
  let results: BatchAnswers["results"] = [];
  let version = "";
  for await (const result of rpc) {
    results = result.results.map(({ output_tensor, latency_ms }, i) => ({
      id: ids[i],
      output: Float32Array.from(output_tensor),
      latencyMs: latency_ms,
    }));
    version = result.results[0]?.model_version ?? "";
  }
  await sending;
  options.onProgress?.({ ...stats });
  return { results, version, stats, requestId };
}

function toVector(vector: BatchVector): { readonly id: string | undefined; readonly features: readonly number[] } {
  const { id, features } = "features" in vector ? vector : { id: undefined, features: vector };
  return { id, features: flatValues(features).values };
}
