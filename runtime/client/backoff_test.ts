import { assertEquals, assertThrows } from "tensorlet/assert";
import { backoffMs, retryPolicy } from "./backoff.ts";

Deno.test("backoffMs() doubles up to its bound, and half of it is chance", () => {
  const policy = retryPolicy({ initialDelayMs: 100, maxDelayMs: 1_000 });
  const waits = (random: number) => [1, 2, 3, 4, 5, 50].map((attempt) => backoffMs(policy, attempt, random));
  assertEquals(waits(0), [50, 100, 200, 400, 500, 500]);
  assertEquals(waits(1), [100, 200, 400, 800, 1_000, 1_000]);
});

Deno.test("retryPolicy() has defaults and refuses what cannot be meant", () => {
  assertEquals(retryPolicy(), { retries: 3, initialDelayMs: 200, maxDelayMs: 5_000 });
  assertEquals(retryPolicy({ retries: 0 }).retries, 0);
  assertThrows(() => retryPolicy({ maxDelayMs: NaN }), RangeError, "retry.maxDelayMs is NaN, wanted a number from 0");
});
