// What metrics are between those who count and those who show them: plain data, in the form that prom-client has for it.

/** One number. */
export interface MetricSample {
  /** What it is about. Values come from the registry and other fixed sets, never from callers. */
  readonly labels: Readonly<Record<string, string | number>>;
  /** What was counted or measured. */
  readonly value: number;
  /** Of a histogram: `NAME_bucket`, `NAME_sum` or `NAME_count`. */
  readonly metricName?: string;
}

/** Numbers of one name. */
export interface MetricFamily {
  /** As Prometheus' conventions have it: with its unit, and `_total` where it only grows. */
  readonly name: string;
  /** What it is, in a sentence. */
  readonly help: string;
  /** What may be done with it. */
  readonly type: "counter" | "gauge" | "histogram";
  /** What becomes of the numbers of several processes. */
  readonly aggregator: "sum" | "first";
  /** The numbers, each with labels of its own. */
  readonly values: readonly MetricSample[];
}

/** The metrics of one process. */
export type ProcessMetrics = readonly MetricFamily[];
