// Bounds the calls in flight: what is beyond the bound waits in a short queue, what is beyond the queue is refused.
import { around } from "../core/around.ts";
import type { Call, Interceptor } from "../core/call.ts";
import { ModelError } from "../core/error.ts";
import { abortable } from "../core/signal.ts";

/** The options of {@linkcode limits}. */
export interface LimitsOptions {
  /** Calls that run at once. */
  readonly maxInFlight: number;
  /** Calls that wait for one of them to end. */
  readonly maxQueue: number;
}

/** Runs at most `maxInFlight` calls at once, first come first served. */
export function limits(options: LimitsOptions): Interceptor {
  let inFlight = 0;
  const queue = new Set<() => void>();

  const release = () => {
    const [start] = queue;
    if (start === undefined) {
      inFlight--;
      return;
    }
    queue.delete(start);
    start(); // its place passes on
  };

  async function waitForPlace(call: Call): Promise<void> {
    if (queue.size >= options.maxQueue) {
      throw new ModelError(
        "resource_exhausted",
        `The server is busy: ${options.maxInFlight} calls run (option maxInFlight) and ${options.maxQueue} wait (option maxQueue)`,
        { details: { retryAfterMs: 1000 } },
      );
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    queue.add(resolve);
    try {
      await abortable(promise, call.signal);
    } catch (error) {
      // The place may have come in the same moment as the abort.
      if (!queue.delete(resolve)) release();
      throw error;
    }
  }

  const takePlace = (call: Call): void | Promise<void> => {
    if (inFlight >= options.maxInFlight) return waitForPlace(call);
    inFlight++;
  };
  return (next) => (call) => around({ enter: () => takePlace(call), values: () => next(call), leave: release });
}
