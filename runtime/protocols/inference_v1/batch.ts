// BatchPredict: feature vectors in, one result with an answer for each.
import type { BatchCallItem } from "../../core/call.ts";
import { findEntry } from "../../core/catalog.ts";
import { checkInput } from "../../core/check.ts";
import { ModelError, quote } from "../../core/error.ts";
import { type AdapterHost, callBase, type RpcContext } from "../adapter.ts";
import { createEncoder } from "../codec.ts";
import { join, withField } from "../parts.ts";
import { answerParts } from "./answer.ts";
import { checkOutputName, inputOf, outputOf, readParams } from "./request.ts";

interface FeatureVector {
  readonly id: string;
  readonly features: ArrayLike<number>;
}

const PROTO = "inference/v1/model_inference.proto";
const encodeResult = createEncoder(PROTO, "inference.v1.BatchResult");
const encodeAnswer = createEncoder(PROTO, "inference.v1.PredictResponse");
/** `BatchResult.results`. */
const RESULTS = 1;

/** `ModelInference/BatchPredict`. Its one answer comes in the parts that it was encoded in. */
export async function* batchPredict(
  host: AdapterHost,
  requests: AsyncIterable<unknown, void, undefined>,
  rpc: RpcContext,
): AsyncGenerator<readonly Uint8Array[], void, undefined> {
  const entry = findEntry(host.catalog, rpc.metadata.get("model-id") ?? "", "batch", `model (metadata "model-id")`);
  const { params, shape, output: name } = readParams(entry, rpc.metadata);
  checkOutputName(entry, name);
  // Encoded as they come: as objects, many small results would take far more memory than their message.
  const parts: Uint8Array[] = [];
  let bytes = 0;
  let total = 0;

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
    const outputs: Float32Array[] = [];
    for await (const reply of host.invoke({ ...callBase(rpc, entry, params), kind: "batch", items })) {
      const { id } = reply.type === "tensors" || reply.type === "failure" ? items[reply.index]! : { id: "" };
      if (reply.type === "failure") throw vectorError(reply.error, id, total + reply.index);
      if (reply.type === "tensors") outputs[reply.index] = outputOf(reply.output, name);
    }
    const latency_ms = performance.now() - start;
    for (const output of outputs) {
      const answer = answerParts({ output, latency_ms, model_version: entry.version }, encodeAnswer);
      append(join(withField([], RESULTS, answer))); // a copy: the function may use its arrays again
    }
    total += outputs.length;
    if (bytes > rpc.maxMessageBytes) throw resultTooLarge(rpc.maxMessageBytes, total);
  };
  const append = (part: Uint8Array) => {
    parts.push(part);
    bytes += part.length;
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
  append(encodeResult({ total_processed: total }));
  yield parts;
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
