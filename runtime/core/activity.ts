/** Latencies of the calls that ended within the last seconds, in milliseconds; undefined where there was none. */
export interface LatencyView {
  /** The median. */
  readonly p50: number | undefined;
  /** What 95 of 100 calls did not exceed. */
  readonly p95: number | undefined;
  /** What 99 of 100 calls did not exceed. */
  readonly p99: number | undefined;
}

/** What one function, or all of them, have done since the process started. */
export interface ActivityCounts extends LatencyView {
  /** Calls that have begun. */
  readonly started: number;
  /** Calls that have ended, in whatever way. */
  readonly finished: number;
  /** Those that ended in a failure; that a client left is none. */
  readonly failed: number;
  /** Pieces of text that streams and chats have answered. */
  readonly tokens: number;
}

/** What this process of the server has done. */
export interface ActivityView {
  /** All functions together. */
  readonly total: ActivityCounts;
  /** Each function that was called. */
  readonly functions: ReadonlyMap<string, ActivityCounts>;
}
