// ErrorCode to HTTP status, and the response of a failure.
import type { ErrorCode, ModelError } from "../../core/error.ts";
import type { HttpRoute } from "../../protocols/adapter.ts";
import { HttpError } from "../../protocols/http.ts";

/** As google.rpc.Code has it. */
const STATUSES: Readonly<Record<ErrorCode, number>> = {
  cancelled: 499,
  unknown: 500,
  invalid_argument: 400,
  deadline_exceeded: 504,
  not_found: 404,
  already_exists: 409,
  permission_denied: 403,
  resource_exhausted: 429,
  failed_precondition: 400,
  aborted: 409,
  out_of_range: 400,
  unimplemented: 501,
  internal: 500,
  unavailable: 503,
  data_loss: 500,
  unauthenticated: 401,
};

/** The HTTP status of an error. */
export function httpStatusOf(error: ModelError): number {
  if (error instanceof HttpError) return error.status;
  return Object.hasOwn(STATUSES, error.code) ? STATUSES[error.code] : 500;
}

/** The response of a failure, with the body that its route gives it. */
export function errorResponse(error: ModelError, route?: HttpRoute): Response {
  const status = httpStatusOf(error);
  const body = route?.errorBody?.(error, status) ?? { error: error.message.toWellFormed() };
  const response = Response.json(body, { status });
  const retryAfterMs = error.details?.["retryAfterMs"];
  if (typeof retryAfterMs === "number" && retryAfterMs >= 0 && Number.isFinite(retryAfterMs)) {
    response.headers.set("retry-after", `${Math.ceil(retryAfterMs / 1000)}`);
  }
  return response;
}
