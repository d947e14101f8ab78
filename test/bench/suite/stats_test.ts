import { assertEquals, assertThrows } from "tensorlet/assert";
import { orderOf, quantile, ratios, spread } from "./stats.ts";

Deno.test("quantile interpolates as NumPy's percentile does", () => {
  assertEquals(quantile([4, 1, 3, 2], 0.5), 2.5);
  assertEquals(quantile([1, 2, 3, 4, 5], 0.25), 2);
  assertEquals(quantile([10, 20], 0.99), 19.9);
  assertEquals([quantile([7], 0), quantile([7], 1)], [7, 7]);
  assertThrows(() => quantile([], 0.5), RangeError, "no values");
});

Deno.test("spread leaves out what was not measured", () => {
  assertEquals(spread([3, undefined, 1, NaN, 2]), { median: 2, min: 1, max: 3 });
  assertEquals(spread([undefined, NaN]), undefined);
});

Deno.test("ratios pair the values of a round", () => {
  // Twice as slow in one round, which both of them met: the ratio stays.
  assertEquals(ratios([1, 2, 1], [2, 4, 2]), { median: 0.5, min: 0.5, max: 0.5 });
  assertEquals(ratios([1, undefined, 3], [2, 1, undefined]), { median: 0.5, min: 0.5, max: 0.5 });
  assertEquals(ratios([], []), undefined);
});

Deno.test("orderOf has everybody once in a round, and first in turn", () => {
  const members = ["a", "b", "c"];
  const rounds = [0, 1, 2, 3, 4, 5].map((round) => orderOf(members, round).join(""));
  assertEquals(rounds, ["abc", "cba", "bca", "acb", "cab", "bac"]);
  for (const round of rounds) assertEquals([...round].toSorted().join(""), "abc");
  assertEquals(orderOf([], 3), []);
});
