/** How many there were, and what they took together in milliseconds. */
export interface Durations {
  /** How many. */
  readonly count: number;
  /** Together. */
  readonly ms: number;
}

/** What a version of a function has answered in this process since the server started. */
export interface FunctionStatistics {
  /** Epoch milliseconds of the end of the last call; 0 = none yet. */
  readonly lastCallAt: number;
  /** Calls that succeeded, from their arrival to the end of their last answer. */
  readonly succeeded: Durations;
  /** Calls that failed. Neither: those whose client left. */
  readonly failed: Durations;
  /** What requests waited from their arrival until their handler began. */
  readonly queued: Durations;
  /** What requests took in instances; each item of a batch took the batch's time. */
  readonly computed: Durations;
  /** What was given to an instance at once: a batch counts once, as a request each of its items counts. */
  readonly executions: number;
}
