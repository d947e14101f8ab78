// Every failure of a call, as one class.
import { type Metadata, type ServiceError, status } from "@grpc/grpc-js";
import type { ErrorCode } from "../core/error.ts";
import { decodeStatusDetails } from "./messages.ts";

/** What a {@linkcode ClientError} carries besides its message. */
export interface ClientErrorOptions {
  /** What the server says besides its message, as texts by name. */
  readonly details?: Readonly<Record<string, string>> | undefined;
  /** Of the call that failed. */
  readonly requestId?: string | undefined;
  /** How long the server wants the caller to wait, in milliseconds. */
  readonly retryAfterMs?: number | undefined;
  /** What was caught. */
  readonly cause?: unknown;
}

/**
 * The failure of a call: the server's status, or what went wrong on the way to it. The only class that a client's
 * methods throw, but for `TypeError` and `RangeError` where an option cannot be meant.
 *
 * @example
 * ```ts
 * import { ClientError } from "tensorlet/client";
 *
 * const error = new ClientError("unavailable", "Connection dropped", { retryAfterMs: 500 });
 * console.assert(error.code === "unavailable" && error.retryAfterMs === 500);
 * ```
 */
export class ClientError extends Error {
  /** gRPC's status, in lower case; the names of `ModelError`. */
  readonly code: ErrorCode;
  /** What the server says besides its message, as texts by name. */
  readonly details: Readonly<Record<string, string>> | undefined;
  /** Of the call that failed; the server's log knows it by this name. */
  readonly requestId: string | undefined;
  /** How long the server wants the caller to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  /** Makes the error of one call. */
  constructor(code: ErrorCode, message: string, options: ClientErrorOptions = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.name = "ClientError";
    this.code = code;
    this.details = options.details;
    this.requestId = options.requestId;
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** The error of a call that ended with a status other than OK. */
export function statusError(error: ServiceError, requestId: string): ClientError {
  // grpc-js reports its own deadline with a list of what it was doing.
  const isOwnDeadline = error.code === status.DEADLINE_EXCEEDED && /^Deadline exceeded after/.test(error.details);
  const message = isOwnDeadline ? "The call's deadline passed before it was answered" : error.details || error.message;
  return new ClientError(codeOf(error.code), message, {
    ...readDetails(error.metadata),
    // Without one of ours the server has made one.
    requestId: sentId(error.metadata) ?? requestId,
    cause: error,
  });
}

/**
 * Whether the connection broke, or there was none: nothing is known of what the server did. HTTP/2 ends streams of a
 * broken connection in several ways, and grpc-js has a status for each.
 */
export function isConnectionLost(error: ClientError): boolean {
  if (error.code === "unavailable") return true;
  const text = (error.cause as Partial<ServiceError> | undefined)?.details ?? "";
  return /^(internal|unknown)$/.test(error.code)
    ? text.startsWith("Received RST_STREAM with code")
    : error.code === "cancelled" && text === "Call cancelled";
}

function codeOf(code: number): ErrorCode {
  const name = (status[code] ?? "UNKNOWN").toLowerCase();
  return name as ErrorCode;
}

function sentId(metadata: Metadata | undefined): string | undefined {
  const [id] = metadata?.get("request-id") ?? [];
  return typeof id === "string" ? id : undefined;
}

function readDetails(metadata: Metadata | undefined): Pick<ClientErrorOptions, "details" | "retryAfterMs"> {
  const [bytes] = metadata?.get("grpc-status-details-bin") ?? [];
  if (!(bytes instanceof Uint8Array)) return {};
  try {
    return decodeStatusDetails(bytes);
  } catch {
    return {}; // another server's idea of details: the status itself is what matters
  }
}
