// Turns a call's deadline into an abort of its signal, and gives unary calls one where the caller set none.
import type { Call, Interceptor, Invoke, Reply } from "../core/call.ts";
import { atDeadline, deadlineExceeded, linkSignals } from "../core/signal.ts";

/** The options of {@linkcode deadline}. */
export interface DeadlineOptions {
  /** Bound of a unary call without a deadline of its own, in milliseconds. */
  readonly unaryTimeoutMs: number;
}

/** Aborts calls at their deadline. */
export function deadline(options: DeadlineOptions): Interceptor {
  return (next) => (call) => {
    const at = call.deadline ?? (call.kind === "predict" ? Date.now() + options.unaryTimeoutMs : undefined);
    return at === undefined ? next(call) : runUntil(next, { ...call, deadline: at }, at);
  };
}

async function* runUntil(next: Invoke, call: Call, at: number): AsyncIterable<Reply, void, undefined> {
  if (at <= Date.now()) throw deadlineExceeded();
  using linked = linkSignals(call.signal);
  const disarm = atDeadline(at, () => linked.abort(deadlineExceeded()));
  try {
    yield* next({ ...call, signal: linked.signal });
  } finally {
    disarm();
  }
}
