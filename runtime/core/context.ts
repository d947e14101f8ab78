import type { Call, ChatMessage } from "./call.ts";
import type { Logger } from "./log.ts";
import type { ContextValues } from "./values.ts";

/** The second argument of `predict`. `M` is what `load` returned. */
export interface Context<M, P> {
  /** The caller's `request-id`, or one that the runtime made. */
  readonly requestId: string;
  /** Aborts on client cancel, deadline, or server shutdown; `reason` says which. */
  readonly signal: AbortSignal;
  /** The caller's, or the server's for unary calls; undefined = none. */
  readonly deadline: Date | undefined;
  /** Milliseconds left, `Infinity` without a deadline. */
  remainingMs(): number;
  /** The call's parameters, checked and converted where they are declared. */
  readonly params: P;
  /** The caller's max_tokens; undefined when it was 0 or the protocol has none. */
  readonly maxTokens: number | undefined;
  /** What `load` returned. */
  readonly model: M;
  /** Its lines carry the function and the request id. */
  readonly log: Logger;
  /** Lower-cased request metadata. */
  readonly metadata: Headers;
  /** Typed values from interceptors. */
  readonly values: ContextValues;
}

/** The second argument of `stream`: it may yield, or call `emit` (for callback libraries). */
export interface StreamContext<M, P, C> extends Context<M, P> {
  /** Resolves once the reader took the chunk; rejects when the call is aborted. */
  emit(chunk: C): Promise<void>;
}

/** One request of a batch. */
export interface BatchItem<I, P> {
  /** The request's tensors. */
  readonly input: I;
  /** The call's parameters, checked and converted where they are declared. */
  readonly params: P;
  /** Names the request in logs. */
  readonly requestId: string;
  /** Aborts when this request is. */
  readonly signal: AbortSignal;
}

/** The second argument of `batch`: one per batch; what belongs to one request sits on its `BatchItem`. */
export interface BatchContext<M> {
  /** Aborts when every item is aborted, or at shutdown. */
  readonly signal: AbortSignal;
  /** The tightest deadline among the items. */
  remainingMs(): number;
  /** What `load` returned. */
  readonly model: M;
  /** Its lines carry the function and the request id. */
  readonly log: Logger;
}

/** A conversation as its handler sees it. */
export interface Session<S> {
  /** Tells keys apart. */
  readonly id: string;
  /** Turns answered before this one: 0 on the first. */
  readonly turn: number;
  /** Without the current message; the oldest turns leave first when it grows beyond its bounds. */
  readonly history: readonly ChatMessage[];
  /** Structured-cloneable; saved when the turn succeeds. */
  state: S;
}

/** The second argument of `chat`. */
export interface ChatContext<M, P, S> extends Context<M, P> {
  /** The conversation that this turn belongs to. */
  readonly session: Session<S>;
  /** Resolves once the reader took the piece; rejects when the call is aborted. */
  emit(delta: string): Promise<void>;
}

/** The argument of `load`. */
export interface LoadContext {
  /** The function's name. */
  readonly name: string;
  /** Aborts at shutdown. */
  readonly signal: AbortSignal;
  /** Its lines carry the function and the request id. */
  readonly log: Logger;
  /** A file next to the function. */
  asset(path: string): URL;
}

/** Milliseconds until `deadline` (epoch milliseconds), 0 when past, `Infinity` without one. */
export function remainingMs(deadline: number | undefined): number {
  return deadline === undefined ? Infinity : Math.max(0, deadline - Date.now());
}

/** The part of a context that all handlers share. */
export function createContext<M, P>(call: Call, signal: AbortSignal, model: M, log: Logger): Context<M, P> {
  return {
    requestId: call.id,
    signal,
    deadline: call.deadline === undefined ? undefined : new Date(call.deadline),
    remainingMs: () => remainingMs(call.deadline),
    params: call.params as P,
    maxTokens: call.maxTokens,
    model,
    log,
    metadata: call.metadata,
    values: call.values,
  };
}
