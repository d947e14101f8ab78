import { assertEquals } from "tensorlet/assert";
import { Histogram } from "./histogram.ts";

Deno.test("Histogram counts a number in the range that it ends, and in all that are larger", () => {
  const histogram = new Histogram([1, 2.5]);
  for (const value of [0, 1, 1.5, 2.5, 100]) histogram.observe(value);
  assertEquals([...histogram.samples("size", { model: "m" })], [
    { labels: { model: "m", le: 1 }, value: 2, metricName: "size_bucket" },
    { labels: { model: "m", le: 2.5 }, value: 4, metricName: "size_bucket" },
    { labels: { model: "m", le: "+Inf" }, value: 5, metricName: "size_bucket" },
    { labels: { model: "m" }, value: 105, metricName: "size_sum" },
    { labels: { model: "m" }, value: 5, metricName: "size_count" },
  ]);
  assertEquals([histogram.count, histogram.sum], [5, 105]);
});
