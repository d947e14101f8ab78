// ErrorCode to gRPC status, in the form that survives the wire.
import { type Metadata, status } from "@grpc/grpc-js";
import { Buffer } from "node:buffer";
import type { ErrorCode, ModelError } from "../../core/error.ts";
import { createEncoder } from "../../protocols/codec.ts";

const CODES: Readonly<Record<ErrorCode, number>> = {
  cancelled: status.CANCELLED,
  unknown: status.UNKNOWN,
  invalid_argument: status.INVALID_ARGUMENT,
  deadline_exceeded: status.DEADLINE_EXCEEDED,
  not_found: status.NOT_FOUND,
  already_exists: status.ALREADY_EXISTS,
  permission_denied: status.PERMISSION_DENIED,
  resource_exhausted: status.RESOURCE_EXHAUSTED,
  failed_precondition: status.FAILED_PRECONDITION,
  aborted: status.ABORTED,
  out_of_range: status.OUT_OF_RANGE,
  unimplemented: status.UNIMPLEMENTED,
  internal: status.INTERNAL,
  unavailable: status.UNAVAILABLE,
  data_loss: status.DATA_LOSS,
  unauthenticated: status.UNAUTHENTICATED,
};

// Clients take 8 KiB of headers in all; a message beyond that loses the code too. Percent-encoding counts.
const MAX_MESSAGE_BYTES = 2048;
const MAX_DETAILS_BYTES = 2048;

/** Beyond a day a caller is not told when to try again. */
const MAX_RETRY_MS = 86_400_000;

const RPC_STATUS = "google/rpc/status.proto";

interface Encoders {
  readonly status: (message: object) => Uint8Array;
  readonly errorInfo: (message: object) => Uint8Array;
  readonly retryInfo: (message: object) => Uint8Array;
}

let encoders: Encoders | undefined;

function loadEncoders(): Encoders {
  return encoders ??= {
    status: createEncoder(RPC_STATUS, "google.rpc.Status"),
    errorInfo: createEncoder(RPC_STATUS, "google.rpc.ErrorInfo"),
    retryInfo: createEncoder(RPC_STATUS, "google.rpc.RetryInfo"),
  };
}

/** A status as grpc-js sends it. */
export interface GrpcStatus {
  readonly code: number;
  readonly details: string;
  readonly metadata: Metadata;
}

/** The status of an error; its details go out as google.rpc.Status, and so can be read by any gRPC client. */
export function statusOf(error: ModelError, trailers: Metadata): GrpcStatus {
  const code = Object.hasOwn(CODES, error.code) ? CODES[error.code] : status.UNKNOWN;
  const details = fit(error.message.toWellFormed());
  const bytes = error.details && encodeDetails(code, details, error);
  if (bytes && bytes.length <= MAX_DETAILS_BYTES) trailers.set("grpc-status-details-bin", Buffer.from(bytes));
  return { code, details, metadata: trailers };
}

/** `text` cut so that its percent-encoded form fits in the trailers. */
export function fit(text: string): string {
  if (encodeURI(text).length <= MAX_MESSAGE_BYTES) return text;
  let cut = "";
  let bytes = 0;
  for (const character of text) {
    bytes += encodeURI(character).length;
    if (bytes > MAX_MESSAGE_BYTES) break;
    cut += character;
  }
  return `${cut}…`;
}

function encodeDetails(code: number, message: string, error: ModelError): Uint8Array {
  const { status, errorInfo, retryInfo } = loadEncoders();
  const { retryAfterMs, ...rest } = error.details!;
  const metadata = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, textOf(value)]));
  const details = [any("ErrorInfo", errorInfo({ reason: error.code.toUpperCase(), domain: "tensorlet", metadata }))];
  if (typeof retryAfterMs === "number" && retryAfterMs >= 0 && retryAfterMs <= MAX_RETRY_MS) {
    const ms = Math.ceil(retryAfterMs);
    const delay = { seconds: Math.floor(ms / 1000), nanos: (ms % 1000) * 1e6 };
    details.push(any("RetryInfo", retryInfo({ retry_delay: delay })));
  }
  return status({ code, message, details });
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value.toWellFormed();
  try {
    return JSON.stringify(value, (_key, part) => typeof part === "bigint" ? `${part}` : part) ?? `${value}`;
  } catch {
    return "(not serialisable)"; // a cycle, say: no reason to lose the status
  }
}

function any(type: string, value: Uint8Array): object {
  return { type_url: `type.googleapis.com/google.rpc.${type}`, value };
}
