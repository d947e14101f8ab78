// How long to wait before trying again.
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
