import type { ModelError } from "./error.ts";
import type { ParamValue } from "./spec.ts";
import type { NamedTensors } from "./tensor.ts";
import type { ContextValues } from "./values.ts";

/** The four kinds of call, one per handler. */
export type CallKind = "predict" | "stream" | "batch" | "chat";

/** Parameters of a call by name; checked and converted where the function declares them. */
export type CallParams = Readonly<Record<string, ParamValue>>;

/** How a call came to the server. */
export interface CallOrigin {
  /** What carried it. */
  readonly transport: "grpc" | "http" | "memory";
  /** What was called: `inference.v1.ModelInference/Predict`, or `POST /v2/models/:model/infer`. */
  readonly method: string;
  /** The client's address, `host:port`; undefined where nobody knows. */
  readonly peer?: string | undefined;
}

/** What the server notes of a call on its way, for its log and its traces: one object, which all copies of the call share. */
export interface CallTrail {
  /** How it came; undefined for a batch of several calls. */
  readonly origin?: CallOrigin | undefined;
  /** Milliseconds from its request to its start in an instance; undefined before that. */
  queuedMs?: number;
  /** The span that stands for it, where calls are traced. */
  span?: { readonly traceId: string; readonly spanId: string };
}

/** What every call carries. */
export interface CallBase {
  /** The request id: in logs, errors and spans. */
  readonly id: string;
  /** The function's name. */
  readonly model: string;
  /** The version that the caller named; undefined = none. */
  readonly version: string | undefined;
  /** The load of the function that the call was routed to; undefined = the current one. */
  readonly revision?: number;
  /** Its parameters. */
  readonly params: CallParams;
  /** The caller's bound on a stream's chunks; undefined = the function's own. */
  readonly maxTokens: number | undefined;
  /** Aborts with the call. */
  readonly signal: AbortSignal;
  /** Epoch milliseconds. */
  readonly deadline: number | undefined;
  /** Lower-cased request metadata. */
  readonly metadata: Headers;
  /** Typed extras from interceptors. */
  readonly values: ContextValues;
  /** When its request had been read, by this process's `performance.now()`; undefined where nobody looked. */
  readonly receivedAt?: number;
  /** What is noted of it; no instance gets to see it. */
  readonly trail?: CallTrail;
}

/** One request of a batch. */
export interface BatchCallItem {
  /** Names it in logs and errors. */
  readonly id: string;
  /** The tensors it sends. */
  readonly input: NamedTensors;
  /** Its parameters. */
  readonly params: CallParams;
  /** Aborts with the call. */
  readonly signal: AbortSignal;
  /** Of a gathered call: as that of a call. */
  readonly receivedAt?: number;
}

/** One message of a conversation. */
export interface ChatMessage {
  /** Who said it. */
  readonly role: "system" | "user" | "assistant";
  /** What was said. */
  readonly content: string;
  /** The answer was cut short by a cancel, a deadline or a failure. */
  readonly interrupted?: true;
}

/** A session between two turns. */
export interface SessionSnapshot {
  /** Names it in logs and errors. */
  readonly id: string;
  /** Turns answered so far. */
  readonly turn: number;
  /** Oldest first; bounded. */
  readonly history: readonly ChatMessage[];
  /** What the function keeps of it. */
  readonly state: unknown;
}

/** One request, one answer. */
export interface PredictCall extends CallBase {
  /** Which handler answers. */
  readonly kind: "predict";
  /** The tensors it sends. */
  readonly input: NamedTensors;
}

/** One request, many chunks. */
export interface StreamCall extends CallBase {
  /** Which handler answers. */
  readonly kind: "stream";
  /** The tensors it sends. */
  readonly input: NamedTensors;
  /** Its chunks are kept for a while, for a reader that comes back under the same id. @default {false} */
  readonly resumable?: boolean;
  /** Goes on reading the call that is kept under this id, from the chunk of this index on; nothing else runs. */
  readonly resumeFrom?: number;
}

/** Many requests, one answer each. */
export interface BatchCall extends CallBase {
  /** Which handler answers. */
  readonly kind: "batch";
  /** The requests. */
  readonly items: readonly BatchCallItem[];
  /** They are of callers that know nothing of each other. @default {false} */
  readonly gathered?: boolean;
}

/** One turn of a conversation. */
export interface ChatCall extends CallBase {
  /** Which handler answers. */
  readonly kind: "chat";
  /** Which conversation. */
  readonly sessionId: string;
  /** The user's message. */
  readonly message: ChatMessage;
  /**
   * Filled in by the session interceptor; undefined on a session's first turn. A caller that gives one itself gets the
   * turn after it, of a session that is not kept.
   */
  readonly session: SessionSnapshot | undefined;
}

/** What a protocol asks of a function. */
export type Call = PredictCall | StreamCall | BatchCall | ChatCall;

/** What a function answers: predict 1 reply, stream and chat any number, batch one per item. */
export type Reply =
  /** `final` where the producer knows that no reply follows. */
  | { readonly type: "tensors"; readonly index: number; readonly output: NamedTensors; readonly final?: boolean }
  /** One item of a batch failed. */
  | { readonly type: "failure"; readonly index: number; readonly error: ModelError }
  /** A token of a stream, a piece of a chat's answer. */
  | { readonly type: "delta"; readonly index: number; readonly text: string; readonly final?: boolean }
  /** The session's new state; consumed by the session interceptor. */
  | { readonly type: "session"; readonly state: unknown };

/**
 * Runs one call. The end of the iterable is success, a throw (at the call or while iterating) is a `ModelError`,
 * `return()` cancels. Once `call.signal` is aborted the iterable throws its reason without waiting for the handler.
 */
export type Invoke = (call: Call) => AsyncIterable<Reply, void, undefined>;

/** A cross-cutting feature around a call. After `next(call)` the call's tensors are the function's, and may be gone. */
export type Interceptor = (next: Invoke) => Invoke;
