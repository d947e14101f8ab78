// Failures in OpenAI's form.
import { type ErrorCode, ModelError } from "../../core/error.ts";
import { HttpError } from "../http.ts";

/** The body of a failure, and the last event of a stream that failed. */
export interface ErrorBody {
  /** What went wrong. */
  readonly error: {
    readonly message: string;
    readonly type: string;
    /** The field of the request that is to blame. */
    readonly param: string | null;
    readonly code: string | null;
  };
}

/** A field of the request that cannot be accepted: a 400 that names it. */
export function badField(param: string, message: string, code?: string): ModelError {
  return new ModelError("invalid_argument", message, { details: { param, ...code !== undefined && { code } } });
}

/** A function that exists and cannot do what is asked of it: a 400. */
export function unsuitedModel(message: string): ModelError {
  return badField("model", message, "model_not_supported");
}

/** There is no such function: OpenAI's 404. */
export function modelNotFound(message: string): ModelError {
  return new HttpError(404, "not_found", message, { details: { param: "model", code: "model_not_found" } });
}

/** A failure as OpenAI's clients read it; `status` is undefined in the middle of a stream, which has one already. */
export function errorBody({ code, message, details }: ModelError, status?: number): ErrorBody {
  const type = typeOf(code, status);
  const isRate = type === "rate_limit_error";
  return {
    error: {
      message: message.toWellFormed(),
      type,
      param: textOf(details?.param),
      code: textOf(details?.code) ?? (isRate ? "rate_limit_exceeded" : null),
    },
  };
}

function typeOf(code: ErrorCode, status: number | undefined): string {
  switch (code) {
    case "invalid_argument":
    case "not_found":
    case "already_exists":
    case "failed_precondition":
    case "out_of_range":
      return "invalid_request_error";
    case "unauthenticated":
      return "authentication_error";
    case "permission_denied":
      return "permission_error";
    case "resource_exhausted": // also a body that is too large
      return status === undefined || status === 429 ? "rate_limit_error" : "invalid_request_error";
    case "unimplemented": // also a method that a path does not have
      return status === 405 ? "invalid_request_error" : "server_error";
    default:
      return "server_error";
  }
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
