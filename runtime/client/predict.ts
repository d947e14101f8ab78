// Unary calls: `inference.InferenceService/Predict`, which keeps dtypes.
import { PREDICT } from "./messages.ts";
import { Attempts } from "./retry.ts";
import { boundsOf, type Options, paramMetadata, type Target } from "./target.ts";
import { asClientError, decodeOutputs, encodeInputs } from "./tensors.ts";

/** Answers one request. */
export async function predict(
  { connection, model, definition, policy }: Target,
  input: unknown,
  options: Options,
): Promise<{ readonly output: unknown; readonly latencyMs: number; readonly requestId: string }> {
  const bounds = boundsOf(options);
  const { requestId } = bounds;
  const metadata = { ...paramMetadata(options.params), ...options.metadata, "request-id": requestId };
  try {
    const request = { model_name: model, inputs: encodeInputs(definition, input) };
    const attempts = new Attempts(policy, bounds);
    const response = await attempts.run(() => connection.unary(PREDICT, request, { ...bounds, metadata }));
    return { output: decodeOutputs(definition, response.outputs), latencyMs: response.latency_ms, requestId };
  } catch (error) {
    throw asClientError(error, requestId);
  }
}
