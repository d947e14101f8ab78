import { assertEquals } from "tensorlet/assert";
import { formatProgress, ProgressLine } from "./progress.ts";

Deno.test("formatProgress() shows a bar where the end is known", () => {
  assertEquals(
    formatProgress({ rows: 1200, seconds: 0.25, done: 0.26 }),
    "[#####...............]  26 %  1200 rows  4800 rows/s",
  );
  assertEquals(formatProgress({ rows: 1, seconds: 0, done: 2 }), `[${"#".repeat(20)}] 100 %  1 row`);
  assertEquals(formatProgress({ rows: 3, seconds: 2, done: undefined }), "3 rows  2 rows/s");
});

Deno.test("ProgressLine draws ten times a second at most, and cleans up what it has drawn", () => {
  let now = 0;
  const written: string[] = [];
  const line = new ProgressLine((text) => written.push(text), () => now);
  line.update(1, undefined);
  line.clear();
  assertEquals(written, []);
  for (now = 50; now <= 250; now += 50) line.update(now, undefined);
  assertEquals(written, ["\r100 rows  1000 rows/s\x1b[K", "\r200 rows  1000 rows/s\x1b[K"]);
  line.clear();
  line.clear();
  assertEquals(written.slice(2), ["\r\x1b[K"]);
});
