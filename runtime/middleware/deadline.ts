// Turns a call's deadline into an abort of its signal, and gives unary calls one where the caller set none.
import type { Interceptor } from "../core/call.ts";
import { runUntil } from "../core/run_until.ts";

/** The options of {@linkcode deadline}. */
export interface DeadlineOptions {
  /** Bound of a unary call without a deadline of its own, in milliseconds. */
  readonly unaryTimeoutMs: number;
}

/** Aborts calls at their deadline. */
export function deadline(options: DeadlineOptions): Interceptor {
  return (next) => (call) => {
    const at = call.deadline ?? (call.kind === "predict" ? Date.now() + options.unaryTimeoutMs : undefined);
    return at === undefined ? next(call) : runUntil(next, call, at);
  };
}
