// Unary calls: `inference.InferenceService/Predict`, which keeps dtypes.
import { PREDICT } from "./messages.ts";
import { Attempts } from "./retry.ts";
import { boundsOf, callMetadata, type Options, type Target } from "./target.ts";
import { asClientError, decodeOutputs, encodeInputs, nameOutputs } from "./tensors.ts";
import type { Prediction } from "./types.ts";

/** Answers one request. */
export async function predict(
  target: Target,
  input: unknown,
  options: Options,
): Promise<Omit<Prediction, "output"> & { readonly output: unknown }> {
  const { connection, model, definition, policy } = target;
  const bounds = boundsOf(target, options);
  const { requestId } = bounds;
  const metadata = callMetadata(target, options, requestId);
  try {
    const { inputs, names } = encodeInputs(definition, input);
    if (names) metadata["input-names"] = names.join(",");
    const request = { model_name: model, inputs };
    const attempts = new Attempts(policy, bounds);
    const response = await attempts.run(() => connection.unary(PREDICT, request, { ...bounds, metadata }));
    const outputs = decodeOutputs(response.outputs);
    return { output: nameOutputs(definition, outputs), outputs, latencyMs: response.latency_ms, requestId };
  } catch (error) {
    throw asClientError(error, requestId);
  }
}
