// The order of the interceptors around every call; each is explained in its own file.
import type { Interceptor, Invoke } from "../core/call.ts";
import type { Logger } from "../core/log.ts";
import { batching, type BatchingEnvironment } from "./batching.ts";
import { deadline, type DeadlineOptions } from "./deadline.ts";
import { limits, type LimitsOptions } from "./limits.ts";
import type { Replays } from "./replay.ts";
import { type LogOptions, requestLog } from "./request_log.ts";
import type { Sessions } from "./session.ts";
import type { Tracing } from "./tracing.ts";
import { validate } from "./validate.ts";

/** The options of {@linkcode chain}. */
export interface ChainOptions extends DeadlineOptions, LimitsOptions, BatchingEnvironment {
  readonly log: Logger;
  /** Logs a line for each call at `info` instead of `debug`. @default {false} */
  readonly accessLog?: boolean | undefined;
  /** What makes spans. @default none are made */
  readonly tracing?: Tracing | undefined;
  readonly sessions: Sessions;
  readonly replays: Replays;
  /** Inside the log, outside the deadline; the first is outermost. */
  readonly interceptors: readonly Interceptor[];
}

/** What of the log differs between protocols. */
export type ProtocolLog = Pick<LogOptions, "protocol" | "meterOf">;

/**
 * Wraps the executor. Outermost are traces, so that the log knows a call's span, and the log, which counts the calls of each
 * protocol by themselves. Replay comes before all that belongs to the run of a call and not to who reads it; the deadline
 * next, so that it ends every wait within; the checks before the session, so that a bad call does not wait for its lock;
 * the limits behind it, so that a turn that waits for its session takes no place. Innermost, single calls become batches.
 */
export function chain(executor: Invoke, options: ChainOptions): (protocol: ProtocolLog) => Invoke {
  const { log, accessLog = false, tracing } = options;
  const interceptors: readonly Interceptor[] = [
    ...options.interceptors,
    options.replays.interceptor,
    deadline(options),
    validate(options.find),
    options.sessions.interceptor,
    limits(options),
    batching(options),
  ];
  const run = tracing ? tracing.runs(executor) : executor;
  const wrapped = interceptors.reduceRight((next, interceptor) => interceptor(next), run);
  return (protocol) => {
    const logged = requestLog({ log, accessLog, ...protocol })(wrapped);
    return tracing ? tracing.calls(logged) : logged;
  };
}
