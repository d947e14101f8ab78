// An instance in the server's own event loop: no isolation, no cost.
import { describeModel, type ResolvedModel } from "../core/define.ts";
import { loadModel, runCall } from "../core/execute.ts";
import { type Logger, withFields } from "../core/log.ts";
import type { Observer } from "../core/observer.ts";
import type { Launch } from "./instance.ts";
import { Pool } from "./pool.ts";
import { DEFAULT_POOL_LIMITS, type PoolLimits } from "./pool_limits.ts";

/** The options of {@linkcode inlineLauncher}. */
export interface InlineOptions {
  /** The function's file: `asset()` resolves against it. */
  readonly base?: URL | undefined;
  /** What `load` would return: used instead of running it. */
  readonly loaded?: { readonly value: unknown };
  /** Its lines carry the function's name. */
  readonly log: Logger;
}

/** Runs a function in this very event loop. */
export function inlineLauncher(model: ResolvedModel, options: InlineOptions): Launch {
  return async (signal) => {
    const { log } = options;
    const target = options.loaded
      ? { model, loaded: options.loaded.value, log }
      : await loadModel(model, { ...options, signal });
    const ended = Promise.withResolvers<undefined>();
    return {
      isolated: false,
      ended: ended.promise,
      vanished: ended.promise,
      run: (call) => runCall(target, call),
      endSession: async (snapshot, reason) => void await model.handlers.close?.({ ...snapshot }, reason),
      responds: () => Promise.resolve(true),
      async close() {
        ended.resolve(undefined);
        await model.handlers.unload?.(target.loaded);
      },
      kill: () => ended.resolve(undefined),
    };
  };
}

/** The options of {@linkcode inlinePool}. */
export interface InlinePoolOptions extends InlineOptions {
  /** @default true */
  readonly warm?: boolean;
  /** Closes without waiting for handlers whose calls were aborted. @default {false} */
  readonly abandons?: boolean;
  /** Told of its calls and instances. */
  readonly observer?: Observer | undefined;
}

/** A function that is served from the server's own event loop, without bounds of its own. */
export function inlinePool(model: ResolvedModel, options: InlinePoolOptions): Pool {
  const { warm = true, abandons = false, observer } = options;
  const log = withFields(options.log, { model: model.name });
  const description = describeModel(model);
  return new Pool({
    description,
    launch: inlineLauncher(model, { ...options, log }),
    warm,
    abandons,
    limits: UNBOUNDED,
    observer,
    log,
  });
}

const UNBOUNDED: PoolLimits = {
  ...DEFAULT_POOL_LIMITS,
  idleMs: Infinity,
  concurrency: Infinity,
  queue: Infinity,
  loadTimeoutMs: 2 ** 31 - 1,
};
