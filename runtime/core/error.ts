// In the order of gRPC's numbers, from 1 on.
const ERROR_CODES = [
  "cancelled",
  "unknown",
  "invalid_argument",
  "deadline_exceeded",
  "not_found",
  "already_exists",
  "permission_denied",
  "resource_exhausted",
  "failed_precondition",
  "aborted",
  "out_of_range",
  "unimplemented",
  "internal",
  "unavailable",
  "data_loss",
  "unauthenticated",
] as const satisfies readonly ErrorCode[];

/** Why a call failed: gRPC's status names, in lower case. */
export type ErrorCode =
  | "cancelled"
  | "unknown"
  | "invalid_argument"
  | "deadline_exceeded"
  | "not_found"
  | "already_exists"
  | "permission_denied"
  | "resource_exhausted"
  | "failed_precondition"
  | "aborted"
  | "out_of_range"
  | "unimplemented"
  | "internal"
  | "unavailable"
  | "data_loss"
  | "unauthenticated";

/** What a {@linkcode ModelError} carries besides its message. */
export interface ModelErrorOptions {
  /** Reaches the client; `retryAfterMs` among them tells it when to try again. */
  readonly details?: Readonly<Record<string, unknown>>;
  /** Reaches the log only. */
  readonly cause?: unknown;
}

// Two copies of this module may meet (a worker's realm, a second copy of the package): a brand, not the prototype.
const BRAND = Symbol.for("tensorlet.ModelError");

/**
 * The failure of one call. Thrown by a handler, its code, message and details reach the client; any other
 * exception reaches it as `internal` with a neutral text, and only the log gets the cause.
 *
 * @example
 * ```ts
 * import { ModelError } from "tensorlet";
 *
 * const error = new ModelError("invalid_argument", "Cannot embed an empty text");
 * console.assert(error.code === "invalid_argument");
 * ```
 */
export class ModelError extends Error {
  /** gRPC's status, in lower case. */
  readonly code: ErrorCode;
  /** Reaches the client. */
  readonly details: Readonly<Record<string, unknown>> | undefined;

  /** Makes the error of one call; `message` reaches the client. Throws `TypeError` for a code that is none. */
  constructor(code: ErrorCode, message: string, options: ModelErrorOptions = {}) {
    if (!ERROR_CODES.includes(code)) {
      throw new TypeError(
        `Cannot make a ModelError: code is ${JSON.stringify(code)}, wanted one of ${ERROR_CODES.join(", ")}`,
      );
    }
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.name = "ModelError";
    this.code = code;
    this.details = options.details;
    Object.defineProperty(this, BRAND, { value: true });
  }

  /** Recognises errors of another copy of this module too; a class that extends this one, only its own. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    if (this !== ModelError) return Function.prototype[Symbol.hasInstance].call(this, value);
    return typeof value === "object" && value !== null && BRAND in value;
  }
}

/** gRPC's number of a code. */
export function codeNumber(code: ErrorCode | "ok"): number {
  return code === "ok" ? 0 : ERROR_CODES.indexOf(code) + 1;
}

/** What the client is told of an exception that is not a `ModelError`: nothing of its text. */
export function toModelError(thrown: unknown, requestId: string): ModelError {
  if (isUsable(thrown)) return thrown;
  return new ModelError("internal", `The function failed (request id ${requestId}); the server's log has the cause`, {
    cause: thrown,
  });
}

// An object that only looks like one must not fail where it is made a status.
function isUsable(thrown: unknown): thrown is ModelError {
  try {
    return thrown instanceof ModelError && ERROR_CODES.includes(thrown.code) && typeof thrown.message === "string";
  } catch {
    return false;
  }
}

/** Text from a caller or a file, quoted and cut so that it fits in an error message. */
export function quote(text: string, maxLength = 100): string {
  return JSON.stringify(text.length > maxLength ? `${text.slice(0, maxLength)}…` : text);
}
