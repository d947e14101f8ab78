// When to try again.
import { type Bounds, sleep } from "./bounds.ts";
import { backoffMs, type RetryPolicy } from "./backoff.ts";
import { ClientError, isConnectionLost } from "./error.ts";

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
