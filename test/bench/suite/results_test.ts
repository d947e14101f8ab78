import { assertEquals } from "tensorlet/assert";
import { figureOf, goalsOf } from "./results.ts";
import { ROW } from "./sample_results.ts";

Deno.test("figureOf leaves out rounds that failed", () => {
  assertEquals(figureOf(ROW.contenders[1]!, "rate"), { median: 1500, min: 1000, max: 2000 });
  assertEquals(figureOf(ROW.contenders[0]!, "tokens"), undefined);
});

Deno.test("goalsOf looks at ratios within a round, and only at contenders that were measured", () => {
  const goals = goalsOf(ROW);
  assertEquals(goals.map(({ to, figure, ratio, isMet }) => [to, figure, ratio.median, isMet]), [
    ["Python", "rate", 4, false], // 8000 / 2000 and 4000 / 1000; the medians alone would give 5.3
    ["Python", "p50", (8 / 30 + 16 / 60) / 2, true],
  ]);
});
