// A bound on a call's time.
import { around } from "./around.ts";
import type { Call, Invoke, Reply } from "./call.ts";
import { atDeadline, deadlineExceeded, type LinkedSignal, linkSignals } from "./signal.ts";

/** Runs a call whose signal aborts at `at` (epoch milliseconds) as well. */
export function runUntil(next: Invoke, call: Call, at: number): AsyncIterable<Reply, void, undefined> {
  let linked: LinkedSignal;
  let disarm: () => void;
  return around({
    enter() {
      if (at <= Date.now()) throw deadlineExceeded();
      linked = linkSignals(call.signal);
      disarm = atDeadline(at, () => linked.abort(deadlineExceeded()));
    },
    values: () => next({ ...call, deadline: at, signal: linked.signal }),
    leave() {
      disarm();
      linked[Symbol.dispose]();
    },
  });
}
