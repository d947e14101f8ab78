import { assertEquals, assertThrows } from "tensorlet/assert";
import { parseH2load, parseTimes, toFigures } from "./h2load.ts";

const PRINTED = `
starting benchmark...
Application protocol: h2c

finished in 2.01s, 3552.00 req/s, 318.04KB/s
requests: 7104 total, 7168 started, 7104 done, 7104 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 7136 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 636.07KB (651337) total, 243.37KB (249213) headers (space savings 81.12%), 188.16KB (192672) data
                     min         max         mean         sd        +/- sd
time for request:     3.29ms     87.18ms     17.78ms     10.89ms    86.49%
`;
const TOTALS = { rate: 3552, done: 7104, succeeded: 7104, failed: 0, ok: 7136, bodyBytes: 192_672 };

Deno.test("parseH2load reads the totals", () => {
  assertEquals(parseH2load(PRINTED), TOTALS);
  assertThrows(() => parseH2load("could not connect"), Error, "could not connect");
});

Deno.test("parseTimes reads the log's durations as milliseconds", () => {
  assertEquals(parseTimes("1783000000\t200\t1500\n1783000001\t200\t250\n"), [1.5, 0.25]);
  assertEquals(parseTimes(""), []);
});

Deno.test("toFigures refuses a block in which calls failed", () => {
  assertEquals(toFigures(TOTALS, [1, 2, 3], 27), { calls: 7104, rate: 3552, p50: 2, p99: 2.98 });
  for (
    const broken of [
      { ...TOTALS, failed: 1 },
      { ...TOTALS, succeeded: 7103 },
      { ...TOTALS, ok: 7103 }, // HTTP errors
      { ...TOTALS, done: 0 },
    ]
  ) assertThrows(() => toFigures(broken, [1], 27), Error, "calls");
  // gRPC's errors have HTTP status 200 and no message.
  assertThrows(() => toFigures({ ...TOTALS, bodyBytes: 27 }, [1], 27), Error, "some were errors");
});
