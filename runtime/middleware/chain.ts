// The order of the interceptors around every call; each is explained in its own file.
import type { Interceptor, Invoke } from "../core/call.ts";
import type { Logger } from "../core/log.ts";
import { batching, type BatchingEnvironment } from "./batching.ts";
import { deadline, type DeadlineOptions } from "./deadline.ts";
import { limits, type LimitsOptions } from "./limits.ts";
import type { Replays } from "./replay.ts";
import { type MeterOf, requestLog } from "./request_log.ts";
import type { Sessions } from "./session.ts";
import { validate } from "./validate.ts";

/** The options of {@linkcode chain}. */
export interface ChainOptions extends DeadlineOptions, LimitsOptions, BatchingEnvironment {
  readonly log: Logger;
  readonly sessions: Sessions;
  readonly replays: Replays;
  /** Inside the log, outside the deadline; the first is outermost. */
  readonly interceptors: readonly Interceptor[];
}

/**
 * Wraps the executor; the log, which is outermost, counts the calls of each protocol by themselves. Replay comes before all that belongs to the run of a call and not to who reads it; the deadline
 * next, so that it ends every wait within; the checks before the session, so that a bad call does not wait for its lock;
 * the limits behind it, so that a turn that waits for its session takes no place. Innermost, single calls become batches.
 */
export function chain(executor: Invoke, options: ChainOptions): (meterOf: MeterOf) => Invoke {
  const interceptors: readonly Interceptor[] = [
    ...options.interceptors,
    options.replays.interceptor,
    deadline(options),
    validate(options.find),
    options.sessions.interceptor,
    limits(options),
    batching(options),
  ];
  const logged = interceptors.reduceRight((next, interceptor) => interceptor(next), executor);
  return (meterOf) => requestLog(options.log, meterOf)(logged);
}
