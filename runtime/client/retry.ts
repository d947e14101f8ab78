// When to try again, and after how long.
import { type Bounds, sleep } from "./bounds.ts";
import { ClientError, isConnectionLost } from "./error.ts";
import type { RetryOptions } from "./types.ts";

/** {@linkcode RetryOptions} with their defaults filled in. */
export type RetryPolicy = Required<RetryOptions>;

/** Fills in defaults; throws `RangeError` for what cannot be meant. */
export function retryPolicy(options: RetryOptions = {}): RetryPolicy {
  const policy = { retries: 3, initialDelayMs: 200, maxDelayMs: 5_000, ...options };
  for (const [name, value] of Object.entries(policy)) {
    if (typeof value === "number" && value >= 0) continue;
    throw new RangeError(`Cannot make a client: retry.${name} is ${value}, wanted a number from 0`);
  }
  return policy;
}

/** The wait before attempt `attempt` (1 = the first repetition): it doubles, and half of it is chance. */
export function backoffMs(policy: RetryPolicy, attempt: number, random: number = Math.random()): number {
  const full = Math.min(policy.initialDelayMs * 2 ** (attempt - 1), policy.maxDelayMs);
  return full * (0.5 + random / 2);
}

/** Whether the same call may be sent again: nothing was heard of it, or the server had no room and says when. */
export function isRetryable(error: ClientError): boolean {
  return isConnectionLost(error) || (error.code === "resource_exhausted" && error.retryAfterMs !== undefined);
}

/** Counts the attempts of one operation. */
export class Attempts {
  readonly #policy: RetryPolicy;
  readonly #bounds: Bounds;
  #failed = 0;

  constructor(policy: RetryPolicy, bounds: Bounds) {
    this.#policy = policy;
    this.#bounds = bounds;
  }

  /** It went on: what failed before counts no more. */
  reset(): void {
    this.#failed = 0;
  }

  /** Runs `attempt` until it succeeds or fails for good. */
  async run<T>(attempt: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await attempt();
      } catch (error) {
        if (!(error instanceof ClientError && isRetryable(error))) throw error;
        await this.wait(error);
      }
    }
  }

  /** Waits before the next attempt; throws `error` where there is none. */
  async wait(error: ClientError): Promise<void> {
    if (++this.#failed > this.#policy.retries) throw error;
    const backoff = backoffMs(this.#policy, this.#failed);
    const ms = Math.max(backoff, error.retryAfterMs ?? 0);
    const { deadline = Infinity } = this.#bounds;
    if (Date.now() + ms >= deadline) throw error;
    await sleep(ms, this.#bounds);
  }
}
