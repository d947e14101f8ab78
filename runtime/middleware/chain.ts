// The order of the interceptors around every call; each is explained in its own file.
import type { Call, Interceptor, Invoke } from "../core/call.ts";
import type { CatalogEntry } from "../core/catalog.ts";
import type { Logger } from "../core/log.ts";
import { deadline, type DeadlineOptions } from "./deadline.ts";
import { limits, type LimitsOptions } from "./limits.ts";
import { requestLog } from "./request_log.ts";
import type { Sessions } from "./session.ts";
import { validate } from "./validate.ts";

/** The options of {@linkcode chain}. */
export interface ChainOptions extends DeadlineOptions, LimitsOptions {
  readonly log: Logger;
  readonly find: (call: Call) => CatalogEntry;
  readonly sessions: Sessions;
  /** Inside the log, outside the limits; the first is outermost. */
  readonly interceptors: readonly Interceptor[];
}

/**
 * Wraps the executor. Limits come before the deadline, so that a refused call costs nothing, and the checks before
 * the session, so that a bad call does not wait for a lock.
 */
export function chain(executor: Invoke, options: ChainOptions): Invoke {
  const interceptors: readonly Interceptor[] = [
    requestLog(options.log),
    ...options.interceptors,
    limits(options),
    deadline(options),
    validate(options.find),
    options.sessions.interceptor,
  ];
  return interceptors.reduceRight((next, interceptor) => interceptor(next), executor);
}
