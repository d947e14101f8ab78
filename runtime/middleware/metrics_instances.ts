// Counts what functions' instances do: how long calls wait for them and run in them, how large batches are, and how
// instances come and go.
import type { BatchCall, Call, CallKind } from "../core/call.ts";
import type { MetricFamily } from "../core/metrics.ts";
import type { ObservedModel, Observer } from "../core/observer.ts";
import type { FunctionStatistics } from "../core/statistics.ts";
import { Histogram, SECONDS } from "./histogram.ts";
import { counter, histogram } from "./metrics_family.ts";

/** Upper ends of ranges for sizes of batches. */
const SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
/** And for starts of instances, in seconds. */
const LOAD_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

/** The calls of one kind. */
interface KindSeries {
  readonly queue: Histogram;
  readonly compute: Histogram;
}

class Series {
  readonly labels: { readonly model: string; readonly version: string };
  readonly kinds: Partial<Record<CallKind, KindSeries>> = {};
  readonly batches = new Histogram(SIZES);
  readonly loads = new Histogram(LOAD_SECONDS);
  executions = 0;
  /** Requests of these, and what they took: each item of a batch as long as the batch. */
  requests = 0;
  requestMs = 0;
  failures = 0;
  deaths = 0;

  constructor({ name, version }: ObservedModel) {
    this.labels = { model: name, version };
  }

  of(kind: CallKind): KindSeries {
    return this.kinds[kind] ??= { queue: new Histogram(SECONDS), compute: new Histogram(SECONDS) };
  }
}

/** The instances of a server's functions. */
export class InstanceMetrics implements Observer {
  readonly #series = new Map<string, Series>();
  /** Each load of a function has an object of its own for what it is. */
  readonly #byLoad = new WeakMap<ObservedModel, Series>();

  onStart(call: Call, model: ObservedModel, queuedMs: number): void {
    const series = this.#of(model);
    if (call.kind === "batch") series.batches.observe(call.items.length);
    if (call.kind === "batch" && call.gathered) return observeMembers(call, series.of("predict").queue);
    const waitedMs = call.receivedAt === undefined ? queuedMs : performance.now() - call.receivedAt;
    series.of(call.kind).queue.observe(waitedMs / 1000);
  }

  onEnd(call: Call, model: ObservedModel, ms: number): void {
    const series = this.#of(model);
    const requests = call.kind === "batch" ? call.items.length : 1;
    series.of(call.kind).compute.observe(ms / 1000);
    series.executions++;
    series.requests += requests;
    series.requestMs += requests * ms;
  }

  onLoaded(model: ObservedModel, ms: number): void {
    this.#of(model).loads.observe(ms / 1000);
  }

  onLoadFailed(model: ObservedModel): void {
    this.#of(model).failures++;
  }

  onDied(model: ObservedModel): void {
    this.#of(model).deaths++;
  }

  /** What there is to show. */
  *families(): Iterable<MetricFamily> {
    const all = [...this.#series.values()];
    const kinds = all.flatMap(({ labels, kinds }) =>
      Object.entries(kinds).map(([kind, series]) => ({ labels: { kind, ...labels }, ...series }))
    );
    yield histogram(
      "tensorlet_queue_duration_seconds",
      "From a call to the start of its handler: in queues, for its session, for a batch, for a cold start.",
      kinds.filter(({ queue }) => queue.count > 0).map(({ labels, queue }) => [labels, queue]),
    );
    yield histogram(
      "tensorlet_compute_duration_seconds",
      "From the start of a handler to its last reply, the way to a worker and back included.",
      kinds.filter(({ compute }) => compute.count > 0).map(({ labels, compute }) => [labels, compute]),
    );
    yield histogram(
      "tensorlet_batch_size",
      "Requests of each batch that was run.",
      all.filter(({ batches }) => batches.count > 0).map(({ labels, batches }) => [labels, batches]),
    );
    yield histogram(
      "tensorlet_load_duration_seconds",
      "Starts of instances, from the thread or process to the end of the function's load.",
      all.map(({ labels, loads }) => [labels, loads]),
    );
    yield counter(
      "tensorlet_load_failures_total",
      "Instances that could not be started.",
      all.map(({ labels, failures: value }) => ({ labels, value })),
    );
    yield counter(
      "tensorlet_instance_deaths_total",
      "Instances that crashed, ended themselves or had to be ended; others take their places.",
      all.map(({ labels, deaths: value }) => ({ labels, value })),
    );
  }

  /** What the instances of a version of a function have run. */
  statistics(name: string, version: string): Pick<FunctionStatistics, "queued" | "computed" | "executions"> {
    const series = this.#series.get(keyOf({ name, version }));
    const queues = Object.values(series?.kinds ?? {}).map(({ queue }) => queue);
    return {
      queued: {
        count: queues.reduce((sum, { count }) => sum + count, 0),
        ms: queues.reduce((sum, queue) => sum + queue.sum * 1000, 0),
      },
      computed: { count: series?.requests ?? 0, ms: series?.requestMs ?? 0 },
      executions: series?.executions ?? 0,
    };
  }

  #of(model: ObservedModel): Series {
    let series = this.#byLoad.get(model);
    if (!series) {
      const key = keyOf(model);
      series = this.#series.get(key) ?? new Series(model);
      this.#series.set(key, series);
      this.#byLoad.set(model, series);
    }
    return series;
  }
}

function keyOf({ name, version }: ObservedModel): string {
  return JSON.stringify([name, version]);
}

// Each of them waited for itself.
function observeMembers({ items }: BatchCall, queue: Histogram): void {
  const now = performance.now();
  for (const { receivedAt = now } of items) queue.observe((now - receivedAt) / 1000);
}
