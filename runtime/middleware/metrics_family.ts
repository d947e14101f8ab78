// Families of metrics, as their parts are at hand where these are counted.
import type { MetricFamily, MetricSample } from "../core/metrics.ts";
import type { Histogram } from "./histogram.ts";

/** What only grows; `name` ends with `_total`. */
export function counter(name: string, help: string, values: readonly MetricSample[]): MetricFamily {
  return { name, help, type: "counter", aggregator: "sum", values };
}

/** What comes and goes. */
export function gauge(name: string, help: string, values: readonly MetricSample[]): MetricFamily {
  return { name, help, type: "gauge", aggregator: "sum", values };
}

/** Histograms, each with its labels. */
export function histogram(
  name: string,
  help: string,
  all: readonly (readonly [labels: MetricSample["labels"], histogram: Histogram])[],
): MetricFamily {
  const values = all.flatMap(([labels, each]) => [...each.samples(name, labels)]);
  return { name, help, type: "histogram", aggregator: "sum", values };
}
