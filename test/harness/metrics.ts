// Reads metrics by their labels' values.
import type { ProcessMetrics } from "../../runtime/core/metrics.ts";

/** Numbers by their labels' values, blanks between. */
export type Numbers = Readonly<Record<string, number>>;

/** The numbers of a metric; of a histogram those with the suffix, "_count" say. */
export function numbersOf(families: ProcessMetrics): (name: string, suffix?: string) => Numbers {
  return (name, suffix = "") => {
    const { values } = families.find((family) => family.name === name)!;
    const wanted = values.filter(({ metricName = name }) => metricName === name + suffix);
    return Object.fromEntries(wanted.map(({ labels, value }) => [Object.values(labels).join(" "), value]));
  };
}
