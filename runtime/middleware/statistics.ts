// What each function has answered since the server started: how many calls, and how long they took.
import { around } from "../core/around.ts";
import type { Call, Interceptor } from "../core/call.ts";
import { ModelError } from "../core/error.ts";
import type { FunctionStatistics } from "../core/statistics.ts";

interface Sum {
  count: number;
  ms: number;
}

interface Counts {
  lastCallAt: number;
  readonly succeeded: Sum;
  readonly failed: Sum;
  readonly computed: Sum;
  executions: number;
}

const createCounts = (): Counts => ({
  lastCallAt: 0,
  succeeded: { count: 0, ms: 0 },
  failed: { count: 0, ms: 0 },
  computed: { count: 0, ms: 0 },
  executions: 0,
});

/** Counts the calls of each version of each function. */
export class Statistics {
  readonly #versionOf: (call: Call) => string;
  readonly #counts = new Map<string, Counts>();

  /** `versionOf` tells which version answers a call; it throws where none does. */
  constructor(versionOf: (call: Call) => string) {
    this.#versionOf = versionOf;
  }

  /** What a version has answered. */
  of(name: string, version: string): FunctionStatistics {
    return this.#counts.get(`${name}@${version}`) ?? createCounts();
  }

  /** Around all that a call goes through. */
  readonly calls: Interceptor = (next) => (call) => {
    const counts = this.#of(call);
    const start = performance.now();
    return around({
      values: () => next(call),
      leave: (ending) => {
        const isCancelled = ending.how === "failed" && ending.reason instanceof ModelError &&
          ending.reason.code === "cancelled";
        if (ending.how === "left" || isCancelled) return;
        counts.lastCallAt = Date.now();
        add(ending.how === "failed" ? counts.failed : counts.succeeded, performance.now() - start);
      },
    });
  };

  /** Around what runs the calls. */
  readonly executions: Interceptor = (next) => (call) => {
    const counts = this.#of(call);
    const start = performance.now();
    const requests = call.kind === "batch" ? call.items.length : 1;
    counts.executions++;
    return around({
      values: () => next(call),
      leave: () => add(counts.computed, performance.now() - start, requests),
    });
  };

  #of(call: Call): Counts {
    const key = `${call.model}@${this.#versionOf(call)}`;
    let counts = this.#counts.get(key);
    if (!counts) this.#counts.set(key, counts = createCounts());
    return counts;
  }
}

function add(sum: Sum, ms: number, count = 1): void {
  sum.count += count;
  sum.ms += ms * count;
}
