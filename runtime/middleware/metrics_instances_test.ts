import { assertEquals } from "tensorlet/assert";
import { batchCall, batchItem, predictCall } from "../../test/harness/calls.ts";
import { numbersOf } from "../../test/harness/metrics.ts";
import { InstanceMetrics } from "./metrics_instances.ts";

const MODEL = { name: "m", version: "1" };
/** The next load of it. */
const RELOADED = { name: "m", version: "1" };

Deno.test("InstanceMetrics has a call's wait since it came, or else that for an instance", () => {
  const metrics = new InstanceMetrics();
  metrics.onStart(predictCall(), MODEL, 2000);
  metrics.onStart(predictCall({ receivedAt: performance.now() - 70_000 }), RELOADED, 2000);
  const numbers = numbersOf([...metrics.families()]);
  assertEquals(numbers("tensorlet_queue_duration_seconds", "_count"), { "predict m 1": 2 });
  const buckets = numbers("tensorlet_queue_duration_seconds", "_bucket");
  assertEquals([buckets["predict m 1 1"], buckets["predict m 1 2.5"], buckets["predict m 1 60"]], [0, 1, 1]);
});

Deno.test("InstanceMetrics has the wait of each member of a batch, and the run of all at once", () => {
  const metrics = new InstanceMetrics();
  const now = performance.now();
  const items = [20_000, 7_000].map((ms) => ({ ...batchItem("a"), receivedAt: now - ms }));
  const gathered = batchCall(items, { gathered: true });
  metrics.onStart(gathered, MODEL, 0);
  metrics.onEnd(gathered, MODEL, 3000);
  const numbers = numbersOf([...metrics.families()]);
  const waits = numbers("tensorlet_queue_duration_seconds", "_bucket");
  assertEquals(["5", "10", "30"].map((le) => waits[`predict m 1 ${le}`]), [0, 1, 2]);
  assertEquals(numbers("tensorlet_compute_duration_seconds", "_sum"), { "batch m 1": 3 });
  assertEquals(numbers("tensorlet_batch_size", "_sum"), { "m 1": 2 });
});

Deno.test("InstanceMetrics counts starts of instances, those that failed, and what died", () => {
  const metrics = new InstanceMetrics();
  metrics.onLoaded(MODEL, 1500);
  metrics.onLoaded(RELOADED, 500);
  metrics.onLoadFailed(MODEL);
  metrics.onDied(MODEL);
  const numbers = numbersOf([...metrics.families()]);
  assertEquals(numbers("tensorlet_load_duration_seconds", "_sum"), { "m 1": 2 });
  assertEquals(numbers("tensorlet_load_duration_seconds", "_count"), { "m 1": 2 });
  assertEquals(numbers("tensorlet_load_failures_total"), { "m 1": 1 });
  assertEquals(numbers("tensorlet_instance_deaths_total"), { "m 1": 1 });
});

Deno.test("InstanceMetrics.statistics() counts a batch as one execution of all its items", () => {
  const metrics = new InstanceMetrics();
  const none = { queued: { count: 0, ms: 0 }, computed: { count: 0, ms: 0 }, executions: 0 };
  assertEquals(metrics.statistics("m", "1"), none);
  const batch = batchCall(["a", "b", "c"].map((id) => batchItem(id)));
  metrics.onStart(batch, MODEL, 2000);
  metrics.onEnd(batch, MODEL, 10);
  metrics.onStart(predictCall(), RELOADED, 1000);
  metrics.onEnd(predictCall(), RELOADED, 5);
  assertEquals(metrics.statistics("m", "1"), {
    queued: { count: 2, ms: 3000 },
    computed: { count: 4, ms: 35 },
    executions: 2,
  });
  assertEquals(metrics.statistics("m", "2"), none);
});
