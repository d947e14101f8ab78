// What a server is and holds in the moment in which somebody asks.
import type { CatalogEntry } from "../core/catalog.ts";
import type { MetricFamily, MetricSample } from "../core/metrics.ts";
import type { LoadStatus } from "../core/registry.ts";
import { counter, gauge } from "./metrics_family.ts";

/** Where the numbers come from. */
export interface StateSources {
  /** Every load that is alive: those that are replaced and finish their calls, too. */
  readonly loads: () => Iterable<LoadStatus>;
  /** The version of each function that answers calls. */
  readonly list: () => Iterable<CatalogEntry>;
  readonly sessions: () => number;
  /** Processes that died in this one's place before it. */
  readonly restarts: number;
}

/** What there is to show. */
export function* stateFamilies({ loads, list, sessions, restarts }: StateSources): Iterable<MetricFamily> {
  const all = [...loads()];
  const labelsOf = ({ name, version }: CatalogEntry) => ({ model: name, version });
  yield gauge(
    "tensorlet_model_state",
    "Processes in which the function is in this state.",
    [...list()].map((entry) => ({ labels: { ...labelsOf(entry), state: entry.state }, value: 1 })),
  );
  yield gauge(
    "tensorlet_instances",
    "Copies of the function by what they do.",
    sums(
      all.flatMap(({ entry, instances }) =>
        Object.entries(instances).map(([state, value]) => ({ labels: { ...labelsOf(entry), state }, value }))
      ),
    ),
  );
  yield gauge(
    "tensorlet_calls_running",
    "Calls in the function's instances; a batch is one.",
    sums(all.map(({ entry, status }) => ({ labels: labelsOf(entry), value: status.busy }))),
  );
  yield gauge(
    "tensorlet_calls_queued",
    "Calls that wait for an instance of the function.",
    sums(all.map(({ entry, status }) => ({ labels: labelsOf(entry), value: status.queued }))),
  );
  yield gauge("tensorlet_sessions", "Chat sessions that are held.", [{ labels: {}, value: sessions() }]);
  yield counter(
    "tensorlet_process_restarts_total",
    "Processes of the server that died and were replaced.",
    [{ labels: {}, value: restarts }],
  );
  yield* memoryFamilies();
}

function* memoryFamilies(): Iterable<MetricFamily> {
  const { rss, heapUsed, heapTotal, external } = Deno.memoryUsage();
  const bytes = (name: string, help: string, value: number) => gauge(name, help, [{ labels: {}, value }]);
  yield bytes(
    "process_resident_memory_bytes",
    "Memory of the server's processes, workers included, functions' own processes not.",
    rss,
  );
  yield bytes("tensorlet_heap_used_bytes", "What JavaScript uses outside of workers.", heapUsed);
  yield bytes("tensorlet_heap_total_bytes", "What V8 has for JavaScript outside of workers.", heapTotal);
  yield bytes("tensorlet_external_memory_bytes", "Memory of buffers outside of JavaScript's heap.", external);
}

// Several loads of a version are one to whoever looks.
function sums(samples: readonly MetricSample[]): MetricSample[] {
  const groups = Map.groupBy(samples, ({ labels }) => JSON.stringify(labels));
  return [...groups.values()].map((same) => ({
    labels: same[0]!.labels,
    value: same.reduce((sum, { value }) => sum + value, 0),
  }));
}
