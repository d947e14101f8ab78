import { assert, assertEquals } from "tensorlet/assert";
import { numbersOf } from "../../test/harness/metrics.ts";
import { stateFamilies } from "./metrics_state.ts";

Deno.test("stateFamilies() adds up the loads of a version, and tells which one answers", () => {
  const entry = { name: "m", version: "1", state: "ready" } as never;
  const status = { instances: 2, maxInstances: 4, busy: 3, queued: 1 };
  const load = { entry, status, instances: { idle: 1, busy: 1, loading: 0 } };
  const families = [...stateFamilies({
    loads: () => [load, load],
    list: () => [entry],
    sessions: () => 5,
    restarts: 2,
  })];
  const numbers = numbersOf(families);
  assertEquals(numbers("tensorlet_model_state"), { "m 1 ready": 1 });
  assertEquals(numbers("tensorlet_instances"), { "m 1 idle": 2, "m 1 busy": 2, "m 1 loading": 0 });
  assertEquals([numbers("tensorlet_calls_running"), numbers("tensorlet_calls_queued")], [{ "m 1": 6 }, { "m 1": 2 }]);
  assertEquals([numbers("tensorlet_sessions"), numbers("tensorlet_process_restarts_total")], [{ "": 5 }, { "": 2 }]);
  assert(numbers("process_resident_memory_bytes")[""]! > 0);
});
