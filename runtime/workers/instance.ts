// One running copy of a function, at whatever level of isolation.
import type { Call, SessionSnapshot } from "../core/call.ts";
import type { SessionEnd } from "../core/define.ts";
import { ModelError } from "../core/error.ts";
import type { Run } from "../core/execute.ts";

/** One running copy of a function. */
export interface Instance {
  /** Whether it can be ended from outside. */
  readonly isolated: boolean;
  /** Resolves when it is gone, before its calls end: with their failure, where it was not asked to end. */
  readonly ended: Promise<ModelError | undefined>;
  /** Resolves when nothing of it is left: no thread, no process. */
  readonly vanished: Promise<void>;
  run(call: Call): Run;
  /** Runs the function's `close` for a session. */
  endSession(snapshot: SessionSnapshot, reason: SessionEnd): Promise<void>;
  /** Whether its event loop answers within `ms`. */
  responds(ms: number): Promise<boolean>;
  /** Unloads the function, for `graceMs` at most, and ends it; rejects with what the unload threw. */
  close(graceMs: number): Promise<void>;
  /** Ends it at once; its calls fail with `reason`. */
  kill(reason: ModelError): void;
}

/** What the calls of an instance get that has gone; `how` it did. */
export function lostInstance(name: string, how: string, cause?: unknown): ModelError {
  return new ModelError("unavailable", `An instance of function "${name}" ${how}`, {
    details: { retryAfterMs: 100 },
    cause,
  });
}

/** Starts an instance; resolves once the function is loaded. */
export type Launch = (signal: AbortSignal) => Promise<Instance>;
