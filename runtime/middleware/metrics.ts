// The metrics of one process. They are counted in plain objects, and made what others read only when these ask.
import type { Call } from "../core/call.ts";
import type { CatalogEntry } from "../core/catalog.ts";
import type { ProcessMetrics } from "../core/metrics.ts";
import { InstanceMetrics } from "./metrics_instances.ts";
import { RequestMetrics } from "./metrics_requests.ts";
import { stateFamilies, type StateSources } from "./metrics_state.ts";

/** The options of {@linkcode Metrics}. */
export interface MetricsOptions extends StateSources {
  /** Throws where the registry does not know the call's function. */
  readonly find: (call: Call) => CatalogEntry;
  /** What observes the functions' instances. @default one that nobody tells anything */
  readonly instances?: InstanceMetrics | undefined;
}

/** The metrics of one process. */
export class Metrics {
  readonly requests: RequestMetrics;
  readonly #instances: InstanceMetrics;
  readonly #sources: StateSources;

  constructor(options: MetricsOptions) {
    this.requests = new RequestMetrics(options.find);
    this.#instances = options.instances ?? new InstanceMetrics();
    this.#sources = options;
  }

  /** What there is to show now. */
  collect(): ProcessMetrics {
    return [...this.requests.families(), ...this.#instances.families(), ...stateFamilies(this.#sources)];
  }
}
