// How much of a function may run, and for how long.

/** A function's bounds; the host decides them. */
export interface PoolLimits {
  readonly instances: { readonly min: number; readonly max: number };
  /** Calls that run at once in one instance. */
  readonly concurrency: number;
  /** Calls that wait for an instance. */
  readonly queue: number;
  readonly loadTimeoutMs: number;
  /** Bound of a call of any kind; undefined = none but its deadline. */
  readonly callTimeoutMs: number | undefined;
  /** What a handler that was aborted, or an unload, gets before its instance is ended. */
  readonly graceMs: number;
  /** An instance without calls for so long is ended. */
  readonly idleMs: number;
}

/** The bounds where the host says nothing. */
export const DEFAULT_POOL_LIMITS: PoolLimits = {
  instances: { min: 0, max: 1 },
  concurrency: 100,
  queue: 1000,
  loadTimeoutMs: 60_000,
  callTimeoutMs: undefined,
  graceMs: 2_000,
  idleMs: 300_000,
};
