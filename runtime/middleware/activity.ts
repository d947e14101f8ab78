// What a server has been doing for the last seconds, for somebody who looks at it: counts, and latencies as they were
// within a sliding window. One histogram of fixed size a second, so that a call costs an increment.
import type { ActivityCounts, ActivityView, LatencyView } from "../core/activity.ts";
import type { MeterOf } from "./request_log.ts";

/** Seconds that latencies are of. */
export const WINDOW_SECONDS = 10;

/** Buckets for each doubling: neighbours differ by 9 %. */
const PER_DOUBLING = 8;
/** The first bucket ends here, in milliseconds. */
const LEAST_MS = 0.01;
/** Up to 11 hours; what takes longer is in the last one. */
const BUCKETS = 32 * PER_DOUBLING;

/** Counts calls. `now` gives milliseconds that never go back. */
export class Activity {
  readonly #now: () => number;
  readonly #total: Counter;
  readonly #functions = new Map<string, Counter>();

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#total = new Counter();
  }

  /** Counts every call, besides what `meterOf` counts of it. */
  metered(meterOf: MeterOf): MeterOf {
    return (call, startedAt) => {
      const meter = meterOf(call, startedAt);
      const total = this.#total;
      const own = this.#of(call.model);
      total.started++;
      own.started++;
      return {
        onReply(reply) {
          meter.onReply(reply);
          if (reply.type !== "delta" || reply.text === "") return;
          total.tokens++;
          own.tokens++;
        },
        onEnd: (code, ms, error) => {
          meter.onEnd(code, ms, error);
          const now = this.#now();
          const failed = code !== "ok" && code !== "cancelled";
          total.end(now, ms, failed);
          own.end(now, ms, failed);
        },
      };
    };
  }

  /** What there is to see now. */
  view(): ActivityView {
    const now = this.#now();
    const functions = new Map(this.#functions.entries().map(([name, counter]) => [name, counter.counts(now)]));
    return { total: this.#total.counts(now), functions };
  }

  #of(name: string): Counter {
    let counter = this.#functions.get(name);
    if (!counter) this.#functions.set(name, counter = new Counter());
    return counter;
  }
}

class Counter {
  started = 0;
  finished = 0;
  failed = 0;
  tokens = 0;
  /** The histogram of each second, one after the other; made when the first call ends. */
  #buckets: Uint32Array | undefined;
  /** Which second each histogram is of. */
  readonly #seconds = new Float64Array(WINDOW_SECONDS).fill(-Infinity);

  end(now: number, ms: number, failed: boolean): void {
    this.finished++;
    if (failed) this.failed++;
    const buckets = this.#buckets ??= new Uint32Array(WINDOW_SECONDS * BUCKETS);
    const second = Math.floor(now / 1000);
    const slot = second % WINDOW_SECONDS;
    if (this.#seconds[slot] !== second) {
      this.#seconds[slot] = second;
      buckets.fill(0, slot * BUCKETS, (slot + 1) * BUCKETS);
    }
    const bucket = ms <= LEAST_MS ? 0 : Math.min(BUCKETS - 1, Math.ceil(Math.log2(ms / LEAST_MS) * PER_DOUBLING));
    buckets[slot * BUCKETS + bucket]!++;
  }

  counts(now: number): ActivityCounts {
    const { started, finished, failed, tokens } = this;
    return { started, finished, failed, tokens, ...this.#latencies(Math.floor(now / 1000)) };
  }

  #latencies(second: number): LatencyView {
    const sums = new Uint32Array(BUCKETS);
    let count = 0;
    for (const [slot, of] of this.#seconds.entries()) {
      if (of <= second - WINDOW_SECONDS) continue;
      for (let i = 0; i < BUCKETS; i++) {
        const calls = this.#buckets![slot * BUCKETS + i]!;
        sums[i]! += calls;
        count += calls;
      }
    }
    const quantile = (share: number): number | undefined => {
      let left = Math.ceil(count * share);
      if (left === 0) return undefined;
      const bucket = sums.findIndex((calls) => (left -= calls) <= 0);
      return LEAST_MS * 2 ** (bucket / PER_DOUBLING);
    };
    return { p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99) };
  }
}
