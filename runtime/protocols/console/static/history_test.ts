import { assertEquals } from "tensorlet/assert";
import { History, SPAN_SECONDS } from "./history.js";

const counts = {
  started: 0,
  finished: 0,
  failed: 0,
  tokens: 0,
  inFlight: 0,
  p50: undefined,
  p95: undefined,
  p99: undefined,
};
const activity = (more: Partial<typeof counts>) => ({ ...counts, rssBytes: 1, functions: {}, ...more });

Deno.test("the console's history has differences, from the second event on", () => {
  const first = new History().with(activity({ started: 5, finished: 5 }), 10);
  const second = first.with(activity({ started: 9, finished: 9, failed: 2, tokens: 8 }), 12);
  assertEquals(second.samples.map(({ rate, failures, tokens }) => [rate, failures, tokens]), [
    [null, null, null],
    [2, 1, 4],
  ]);
  assertEquals(first.samples.length, 1);
});

Deno.test("the console's history begins anew with another process, and forgets what is old", () => {
  const before = new History().with(activity({ started: 5 }), 0).with(activity({ started: 6 }), 1);
  assertEquals(before.with(activity({ started: 1 }), 2).samples.map(({ rate }) => rate), [null]);
  assertEquals(before.with(activity({ started: 7 }), SPAN_SECONDS + 1).samples.map(({ time }) => time), [
    SPAN_SECONDS + 1,
  ]);
});
