// BatchPredict: feature vectors in, one result with an answer for each.
import type { BatchCallItem } from "../../core/call.ts";
import { findEntry } from "../../core/catalog.ts";
import { checkInput } from "../../core/check.ts";
import { ModelError, quote } from "../../core/error.ts";
import { type AdapterHost, callBase, type RpcContext } from "../adapter.ts";
import { checkOutputName, inputOf, outputOf, readParams } from "./request.ts";

interface FeatureVector {
  readonly id: string;
  readonly features: readonly number[];
}

interface Result {
  readonly output: Float32Array;
  readonly latencyMs: number;
}

// What a PredictResponse takes beside its floats and its version: tags, lengths, latency.
const RESULT_OVERHEAD_BYTES = 24;

/** `ModelInference/BatchPredict`. */
export async function* batchPredict(
  host: AdapterHost,
  requests: AsyncIterable<unknown, void, undefined>,
  rpc: RpcContext,
): AsyncGenerator<object, void, undefined> {
  const entry = findEntry(host.catalog, rpc.metadata.get("model-id") ?? "", "batch", `model (metadata "model-id")`);
  const { params, shape, output: name } = readParams(entry, rpc.metadata);
  checkOutputName(entry, name);
  const results: Result[] = [];
  let bytes = 0;

  const toItem = ({ id, features }: FeatureVector, position: number): BatchCallItem => {
    try {
      const input = inputOf(entry, features, shape);
      if (entry.input) checkInput(entry.input, input);
      return { id, input, params, signal: rpc.signal };
    } catch (error) {
      throw vectorError(error, id, position);
    }
  };
  // Reading stops while a chunk runs, so the client's flow control window fills and it waits.
  const answer = async (items: readonly BatchCallItem[]) => {
    const start = performance.now();
    const first = results.length;
    const outputs: Float32Array[] = [];
    for await (const reply of host.invoke({ ...callBase(rpc, entry, params), kind: "batch", items })) {
      const { id } = reply.type === "tensors" || reply.type === "failure" ? items[reply.index]! : { id: "" };
      if (reply.type === "failure") throw vectorError(reply.error, id, first + reply.index);
      if (reply.type === "tensors") outputs[reply.index] = outputOf(reply.output, name);
    }
    const latencyMs = performance.now() - start;
    for (const output of outputs) {
      bytes += output.byteLength + entry.version.length + RESULT_OVERHEAD_BYTES;
      results.push({ output, latencyMs });
    }
    if (bytes > rpc.maxMessageBytes) throw resultTooLarge(rpc.maxMessageBytes, results.length);
  };

  let chunk: BatchCallItem[] = [];
  let position = 0;
  for await (const vector of requests as AsyncIterable<FeatureVector, void, undefined>) {
    chunk.push(toItem(vector, position++));
    if (chunk.length < entry.maxBatch) continue;
    await answer(chunk);
    chunk = [];
  }
  if (chunk.length > 0) await answer(chunk);
  yield {
    results: results.map(({ output, latencyMs }) => ({
      output_tensor: Array.from(output),
      latency_ms: latencyMs,
      model_version: entry.version,
    })),
    total_processed: results.length,
  };
}

function vectorError(error: unknown, id: string, position: number): unknown {
  if (!(error instanceof ModelError)) return error;
  const message = `Vector ${quote(id)} at position ${position}: ${error.message}`;
  return new ModelError(error.code, message, { ...error.details && { details: error.details }, cause: error.cause });
}

function resultTooLarge(maxBytes: number, count: number): ModelError {
  return new ModelError(
    "resource_exhausted",
    `Cannot send the result of ${count} vectors: it is larger than a message may be, ${maxBytes} bytes (option maxMessageBytes); send fewer vectors`,
  );
}
