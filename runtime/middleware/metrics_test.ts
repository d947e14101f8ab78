import { assertEquals } from "tensorlet/assert";
import { numbersOf } from "../../test/harness/metrics.ts";
import { Metrics, type MetricsOptions } from "./metrics.ts";

function create(options: Partial<MetricsOptions> = {}): Metrics {
  return new Metrics({
    find: () => ({ name: "m", version: "1" }) as never,
    loads: () => [],
    list: () => [],
    sessions: () => 3,
    restarts: 0,
    ...options,
  });
}

Deno.test("Metrics.collect() gives series of its own to one of several processes", () => {
  assertEquals(numbersOf(create().collect())("tensorlet_sessions"), { "": 3 });
  assertEquals(numbersOf(create({ place: 2 }).collect())("tensorlet_sessions"), { "2": 3 });
});

Deno.test("Metrics.collectAll() has what the other processes say, and how many said something", async () => {
  const alone = await create().collectAll();
  assertEquals(numbersOf(alone[0]!)("tensorlet_processes"), { up: 1, silent: 0 });
  const other = create({ place: 2 }).collect();
  const others = () => Promise.resolve({ answered: [other], silent: 1 });
  const all = await create({ place: 1, others }).collectAll();
  assertEquals([all.length, all[1]], [2, other]);
  assertEquals(numbersOf(all[0]!)("tensorlet_processes"), { up: 2, silent: 1 });
});
