// A histogram that costs an increment a number: the way of every call leads through it.
import type { MetricSample } from "../core/metrics.ts";

/** Counts numbers by ranges. */
export class Histogram {
  readonly #bounds: readonly number[];
  /** By range; the last one has no upper bound. */
  readonly #counts: number[];
  #sum = 0;

  /** `bounds`: the ranges' upper ends, ascending. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Array(bounds.length + 1).fill(0);
  }

  /** How many numbers there were. */
  get count(): number {
    return this.#counts.reduce((sum, count) => sum + count);
  }

  /** Their sum. */
  get sum(): number {
    return this.#sum;
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    let range = 0;
    while (range < bounds.length && value > bounds[range]!) range++;
    this.#counts[range]!++;
    this.#sum += value;
  }

  /** As Prometheus has it: each bucket counts what is in those below it, too. */
  *samples(name: string, labels: MetricSample["labels"]): Iterable<MetricSample> {
    let count = 0;
    for (const [range, inRange] of this.#counts.entries()) {
      count += inRange;
      yield { labels: { ...labels, le: this.#bounds[range] ?? "+Inf" }, value: count, metricName: `${name}_bucket` };
    }
    yield { labels, value: this.#sum, metricName: `${name}_sum` };
    yield { labels, value: count, metricName: `${name}_count` };
  }
}

/** Upper ends of ranges for durations, in seconds. */
export const SECONDS: readonly number[] = [
  ...[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05],
  ...[0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
];
