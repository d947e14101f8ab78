// Predict: one flat tensor in, one out. StreamPredict: one request in, its tokens out.
import type { StreamCall } from "../../core/call.ts";
import { findEntry } from "../../core/catalog.ts";
import { ModelError } from "../../core/error.ts";
import type { NamedTensors } from "../../core/tensor.ts";
import { type AdapterHost, callBase, invokePredict, onlyRequest, type RpcContext } from "../adapter.ts";
import type { TimedMessage } from "../latency.ts";
import type { PredictAnswer } from "./answer.ts";
import { checkOutputName, inputOf, outputOf, type PredictRequest, readParams } from "./request.ts";

/** `ModelInference/Predict`. */
export async function* predict(
  host: AdapterHost,
  requests: AsyncIterable<unknown, void, undefined>,
  rpc: RpcContext,
): AsyncGenerator<TimedMessage<PredictAnswer>, void, undefined> {
  const request = await onlyRequest<PredictRequest>(requests);
  const entry = findEntry(host.catalog, request.model_id, "predict", "model_id");
  const { params, shape, output: name } = readParams(entry, rpc.metadata, request.params);
  checkOutputName(entry, name);
  const input = inputOf(entry, request.input_tensor, shape);
  const call = { ...callBase(rpc, entry, params, request.max_tokens), kind: "predict", input } as const;
  for await (const output of invokePredict(host.invoke, call)) {
    yield { since: rpc.decodedAt(), message: { output: outputOf(output, name), model_version: entry.version } };
  }
}

/** `ModelInference/StreamPredict`. */
export async function* streamPredict(
  host: AdapterHost,
  requests: AsyncIterable<unknown, void, undefined>,
  rpc: RpcContext,
): AsyncGenerator<object, void, undefined> {
  const request = await onlyRequest<PredictRequest>(requests);
  const since = rpc.decodedAt();
  const entry = findEntry(host.catalog, request.model_id, "stream", "model_id");
  const { params, shape, resumeFrom } = readParams(entry, rpc.metadata, request.params);
  const call = {
    ...callBase(rpc, entry, params, request.max_tokens),
    ...resumption(rpc, resumeFrom),
    kind: "stream",
    input: resumeFrom === undefined ? inputOf(entry, request.input_tensor, shape) : {},
  } as const;
  const first = resumeFrom ?? 0;
  let index = first;
  let final = false;
  try {
    for await (const reply of host.invoke(call)) {
      if (reply.type !== "delta" && reply.type !== "tensors") continue;
      const token = reply.type === "delta" ? reply.text : textOf(reply.output);
      if (index === first) rpc.trailers.set("time-to-first-token-ms", elapsed(since));
      final = reply.final === true;
      yield { index: index++, token, is_final: final };
    }
    // Which token is the last may be known only when none follows it.
    if (!final) yield { index, token: "", is_final: true };
  } finally {
    rpc.trailers.set("latency-ms", elapsed(since));
    rpc.trailers.set("tokens", `${index - first}`);
  }
}

// A stream is kept under an id that its caller knows.
function resumption(rpc: RpcContext, from: number | undefined): Pick<StreamCall, "resumable" | "resumeFrom"> {
  const isNamed = rpc.metadata.get("request-id") === rpc.id;
  if (from === undefined) return isNamed ? { resumable: true } : {};
  if (isNamed) return { resumeFrom: from };
  throw new ModelError(
    "invalid_argument",
    'Cannot resume a stream: metadata "request-id" has to name it, in 1 to 128 printable ASCII characters',
  );
}

function elapsed(since: number): string {
  return (performance.now() - since).toFixed(3);
}

function textOf(output: NamedTensors): string {
  const tensors = Object.values(output);
  const [only] = tensors;
  if (tensors.length === 1 && only!.dtype === "string" && only!.data.length === 1) return only!.data[0]!;
  throw new ModelError(
    "failed_precondition",
    "Cannot send tensors as tokens: StreamPredict carries text; use inference.InferenceService/Predict",
  );
}
