// A failed call in one line.
import { ClientError } from "../client.ts";
import { type DType, isDType } from "../core/dtype.ts";

/** The dtype that a function wants of an input (its name or position), where that is why the call failed. */
export function wantedDType(error: unknown): { readonly input: string; readonly dtype: DType } | undefined {
  const { input, wantedDtype } = error instanceof ClientError ? error.details ?? {} : {};
  return typeof input === "string" && isDType(wantedDtype) ? { input, dtype: wantedDtype } : undefined;
}

/** Code, message, request id. A stream's request carries float32 alone, whatever `--dtype` says. */
export function failureText(error: ClientError, isStream = false): string {
  const wanted = wantedDType(error);
  const hint = !wanted
    ? ""
    : isStream
    ? "; over gRPC a stream takes float32 only, POST /v2/models/NAME/generate_stream takes others"
    : `; --dtype ${wanted.dtype} converts it`;
  const { requestId, message } = error;
  const id = requestId === undefined || message.includes(requestId) ? "" : ` (request ${requestId})`;
  return `error: ${error.code}: ${message}${hint}${id}`.replaceAll(/\s*\n\s*/g, " ");
}
