// The metrics of one process. They are counted in plain objects, and made what others read only when these ask.
import type { Call } from "../core/call.ts";
import type { CatalogEntry } from "../core/catalog.ts";
import type { MetricFamily, ProcessMetrics } from "../core/metrics.ts";
import type { FunctionStatistics } from "../core/statistics.ts";
import { gauge } from "./metrics_family.ts";
import { InstanceMetrics } from "./metrics_instances.ts";
import { RequestMetrics } from "./metrics_requests.ts";
import { stateFamilies, type StateSources } from "./metrics_state.ts";

/** The options of {@linkcode Metrics}. */
export interface MetricsOptions extends StateSources {
  /** Throws where the registry does not know the call's function. */
  readonly find: (call: Call) => CatalogEntry;
  /** What observes the functions' instances. @default one that nobody tells anything */
  readonly instances?: InstanceMetrics | undefined;
  /** The place of this process among several, a label of all that it counts. @default it is the only one */
  readonly place?: number | undefined;
  /** Asks the server's other processes. @default there are none */
  readonly others?: (() => Promise<OtherMetrics>) | undefined;
}

/** What the other processes of a server have said. */
export interface OtherMetrics {
  readonly answered: readonly ProcessMetrics[];
  /** Those that live but did not answer in time. */
  readonly silent: number;
}

/** The metrics of one process. */
export class Metrics {
  readonly requests: RequestMetrics;
  readonly #instances: InstanceMetrics;
  readonly #sources: StateSources;
  readonly #others: () => Promise<OtherMetrics>;
  readonly #place: number | undefined;

  constructor(options: MetricsOptions) {
    this.requests = new RequestMetrics(options.find);
    this.#instances = options.instances ?? new InstanceMetrics();
    this.#sources = options;
    this.#place = options.place;
    this.#others = options.others ?? (() => Promise.resolve({ answered: [], silent: 0 }));
  }

  /** What a version of a function has answered here. */
  statistics(name: string, version: string): FunctionStatistics {
    return { ...this.requests.statistics(name, version), ...this.#instances.statistics(name, version) };
  }

  /** What each process of the server has to show, this one first; and how many these are. */
  async collectAll(): Promise<readonly ProcessMetrics[]> {
    const { answered, silent } = await this.#others();
    const processes = gauge(
      "tensorlet_processes",
      "Processes of the server: those whose numbers are in here, and not.",
      [
        { labels: { state: "up" }, value: 1 + answered.length },
        { labels: { state: "silent" }, value: silent },
      ],
    );
    return [[processes, ...this.collect()], ...answered];
  }

  /** What this process has to show. */
  collect(): ProcessMetrics {
    const families = [...this.requests.families(), ...this.#instances.families(), ...stateFamilies(this.#sources)];
    return this.#place === undefined ? families : families.map((family) => labelled(family, this.#place!));
  }
}

// A sum of all processes would fall when one of them dies, and whoever sees a counter fall takes all of what is left for
// new. So each has series of its own, and to add them up is left to the query.
function labelled(family: MetricFamily, process: number): MetricFamily {
  const values = family.values.map((sample) => ({ ...sample, labels: { ...sample.labels, process } }));
  return { ...family, values };
}
