// What a server and an instance of a function in a worker or a process say to each other; structured-cloneable.
import type { BatchCall, Call, ChatCall, PredictCall, Reply, SessionSnapshot, StreamCall } from "../core/call.ts";
import type { ModelDescription, SessionEnd } from "../core/define.ts";
import { type ErrorCode, ModelError } from "../core/error.ts";
import type { LogFields, LogLevel } from "../core/log.ts";
import { byteLengthOf } from "../core/tensor.ts";
import { NO_VALUES, valuesOf } from "../core/values.ts";

/** A failure without its class. */
export interface ErrorData {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly cause?: CauseData;
}

/** What a function threw, for the log. */
export interface CauseData {
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
}

type Data<C extends Call> = Omit<C, "signal" | "receivedAt" | "trail" | "metadata" | "values" | "items"> & {
  /** Left out where there are none: every field of a message costs its share of the way. */
  readonly metadata?: readonly (readonly [name: string, value: string])[];
  readonly values?: readonly (readonly [name: string, value: unknown])[];
};

/** A call without its signals and classes. */
export type CallData =
  | Data<PredictCall>
  | Data<StreamCall>
  | Data<ChatCall>
  | Data<BatchCall> & { readonly items: readonly Omit<BatchCall["items"][number], "signal">[] };

/** A reply whose failure has lost its class. */
export type ReplyData =
  | Exclude<Reply, { readonly type: "failure" }>
  | { readonly type: "failure"; readonly index: number; readonly error: ErrorData };

/** From the server. */
export type ToInstance =
  | { readonly type: "call"; readonly id: number; readonly call: CallData }
  /** The reader took so many replies. */
  | { readonly type: "credit"; readonly id: number; readonly count: number }
  /** Aborts a call, or one item of its batch. */
  | { readonly type: "cancel"; readonly id: number; readonly item?: number; readonly reason: ErrorData }
  | {
    readonly type: "session_end";
    readonly id: number;
    readonly snapshot: SessionSnapshot;
    readonly reason: SessionEnd;
  }
  | { readonly type: "ping"; readonly id: number }
  /** Aborts a load in progress. */
  | { readonly type: "abort_load"; readonly reason: ErrorData }
  | { readonly type: "unload" };

/** From the instance. */
export type FromInstance =
  /** The function's file was read; `load` comes next. */
  | { readonly type: "described"; readonly description: ModelDescription }
  | { readonly type: "loaded" }
  /** It could not be read or loaded. */
  | { readonly type: "failed"; readonly error: ErrorData }
  /** With `end` it is the call's last, and its handler has ended. */
  | { readonly type: "reply"; readonly id: number; readonly reply: ReplyData; readonly end: boolean }
  /** The replies have ended, the handler perhaps not yet. */
  | { readonly type: "end"; readonly id: number; readonly error?: ErrorData; readonly settled: boolean }
  /** The handler has ended. */
  | { readonly type: "settled"; readonly id: number }
  /** Answers `session_end`, `ping` and `unload` (id 0). */
  | { readonly type: "done"; readonly id: number; readonly error?: ErrorData }
  | { readonly type: "log"; readonly level: LogLevel; readonly message: string; readonly fields: LogFields }
  /** Something failed that no call waits for: the instance is not to be trusted any more. */
  | { readonly type: "crashed"; readonly error: ErrorData }
  /** It ends by itself. */
  | { readonly type: "exiting" };

/** From a worker that only describes: what a function is, or why that cannot be told; in the order of the functions. */
export type Described =
  | { readonly description: ModelDescription }
  | { readonly error: ErrorData };

/** One end of the connection between a server and an instance. */
export interface Port<In, Out> {
  post(message: Out): void;
  /** Called for every message that comes, in order. */
  onMessage: (message: In) => void;
}

/** A failure without its class. */
export function toErrorData(error: ModelError): ErrorData {
  const { code, message, details, cause } = error;
  return {
    code,
    message,
    ...details && { details: cloneable(details) },
    ...cause !== undefined && { cause: toCauseData(cause) },
  };
}

/** The failure, as a `ModelError` again. */
export function fromErrorData({ code, message, details, cause }: ErrorData): ModelError {
  return new ModelError(code, message, { ...details && { details }, ...cause && { cause: fromCauseData(cause) } });
}

function toCauseData(cause: unknown): CauseData {
  if (!(cause instanceof Error)) return { name: "Error", message: textOf(cause) };
  const { name, message, stack } = cause;
  return { name: textOf(name), message: textOf(message), ...typeof stack === "string" && { stack } };
}

function fromCauseData({ name, message, stack }: CauseData): Error {
  return Object.assign(new Error(message), { name, ...stack !== undefined && { stack } });
}

/** `fields` as they are, or as texts where a worker's messages cannot carry them. */
export function cloneable<T extends Readonly<Record<string, unknown>>>(fields: T): T {
  try {
    return structuredClone(fields);
  } catch {
    return Object.fromEntries(Object.keys(fields).map((key) => [key, cloneOrText(fields, key)])) as T;
  }
}

function cloneOrText(fields: Readonly<Record<string, unknown>>, key: string): unknown {
  let value: unknown;
  try {
    value = fields[key];
    return structuredClone(value);
  } catch {
    return textOf(value);
  }
}

// A function may throw and log anything.
function textOf(value: unknown): string {
  try {
    return typeof value === "function" ? `function ${value.name}` : String(value);
  } catch {
    return "(a value without a text)";
  }
}

/**
 * A call without its signals and classes, and without what an instance has no use for: its revision, of which it is, a
 * time by another clock, and the server's notes.
 */
export function toCallData(call: Call): CallData {
  const { signal: _s, revision: _r, receivedAt: _at, trail: _t, ...sent } = call;
  const { metadata, values, version, maxTokens, deadline, ...rest } = sent;
  const entries = [...metadata];
  const set = [...values.entries()];
  const data = {
    ...rest,
    ...version !== undefined && { version },
    ...maxTokens !== undefined && { maxTokens },
    ...deadline !== undefined && { deadline },
    ...entries.length > 0 && { metadata: entries },
    ...set.length > 0 && { values: set },
  };
  if (data.kind !== "batch") return data as CallData;
  return { ...data, items: data.items.map(({ signal: _s, receivedAt: _at, ...item }) => item) } as CallData;
}

/** The call again, with a signal of the instance's own; a batch's items get theirs from `itemSignal`. */
export function fromCallData(data: CallData, signal: AbortSignal, itemSignal: (index: number) => AbortSignal): Call {
  const common = {
    signal,
    metadata: new Headers(data.metadata as [string, string][] | undefined),
    values: data.values ? valuesOf(new Map(data.values)) : NO_VALUES,
  };
  if (data.kind !== "batch") return { ...data, ...common } as Call;
  const items = data.items.map((item, index) => ({ ...item, signal: itemSignal(index) }));
  return { ...data, ...common, items } as Call;
}

/** A reply whose failure has lost its class. */
export function toReplyData(reply: Reply): ReplyData {
  return reply.type === "failure" ? { ...reply, error: toErrorData(reply.error) } : reply;
}

/** The reply again. */
export function fromReplyData(reply: ReplyData): Reply {
  return reply.type === "failure" ? { ...reply, error: fromErrorData(reply.error) } : reply;
}

/** How many replies an instance sends ahead of their reader. */
export const CREDIT_REPLIES = 16;
/** How many bytes of tensors it sends ahead, one reply at least. */
export const CREDIT_BYTES = 1024 * 1024;

/** Replies of a call that its instance may send ahead: those of a batch are there all at once. */
export function replyCredit(call: CallData): number {
  return call.kind === "batch" ? Math.max(CREDIT_REPLIES, call.items.length) : CREDIT_REPLIES;
}

/** The tensors' bytes of a reply. */
export function bytesOf(reply: Reply | ReplyData): number {
  return reply.type === "tensors" ? byteLengthOf(reply.output) : 0;
}
