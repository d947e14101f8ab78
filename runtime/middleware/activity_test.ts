import { assertAlmostEquals, assertEquals } from "tensorlet/assert";
import { floats, predictCall } from "../../test/harness/calls.ts";
import type { Reply } from "../core/call.ts";
import { Activity, WINDOW_SECONDS } from "./activity.ts";
import type { CallMeter } from "./request_log.ts";

let now = 0;

/** A call that takes so long, and ends so. */
function run(activity: Activity, ms: number, replies: readonly Reply[] = [], code = "ok", model = "m") {
  const call = start(activity, model);
  for (const reply of replies) call.onReply(reply);
  now += ms;
  call.onEnd(code, ms, undefined);
}

function start(activity: Activity, model = "m"): CallMeter {
  return activity.metered(() => ({ onReply() {}, onEnd() {} }))({ ...predictCall(), model }, now);
}

const delta = (text: string): Reply => ({ type: "delta", index: 0, text });

Deno.test("activity counts calls, failures and tokens, of all functions and of each", () => {
  const activity = new Activity(() => now);
  run(activity, 1, [{ type: "tensors", index: 0, output: floats(1) }]);
  run(activity, 1, [delta("a"), delta("b"), delta("")], undefined, "writer");
  run(activity, 1, [], "internal");
  run(activity, 1, [], "cancelled");
  const { total, functions } = activity.view();
  assertEquals([total.started, total.finished, total.failed, total.tokens], [4, 4, 1, 2]);
  assertEquals([...functions.keys()], ["m", "writer"]);
  assertEquals([functions.get("m")!.failed, functions.get("writer")!.tokens], [1, 2]);
});

Deno.test("activity has a call in flight until it has ended, and lets others count it", () => {
  const activity = new Activity(() => now);
  const seen: unknown[] = [];
  const meterOf = activity.metered((call, startedAt) => {
    seen.push(call.model, startedAt);
    return { onReply: (reply) => seen.push(reply), onEnd: (...end) => seen.push(...end) };
  });
  const call = meterOf(predictCall(), 5);
  call.onReply(delta("a"));
  assertEquals([activity.view().total.started, activity.view().total.finished], [1, 0]);
  call.onEnd("cancelled", 7, undefined);
  assertEquals([activity.view().total.finished, activity.view().total.failed], [1, 0]);
  assertEquals(seen, [predictCall().model, 5, delta("a"), "cancelled", 7, undefined]);
});

Deno.test("activity tells percentiles to within a bucket", () => {
  const activity = new Activity(() => now);
  now = 0;
  for (let ms = 1; ms <= 100; ms++) run(activity, ms);
  now = 5050; // all of them within the window
  const { p50, p95, p99 } = activity.view().total;
  for (const [got, wanted] of [[p50, 50], [p95, 95], [p99, 99]]) {
    assertAlmostEquals(Math.log2(got! / wanted!), 0, 1 / 8);
  }
});

Deno.test("activity forgets latencies with the window, and knows none before the first call", () => {
  const activity = new Activity(() => now);
  now = 0;
  assertEquals(activity.view().total.p50, undefined);
  run(activity, 10);
  now = (WINDOW_SECONDS - 1) * 1000;
  assertAlmostEquals(activity.view().total.p50!, 10, 1);
  now = WINDOW_SECONDS * 1000;
  assertEquals([activity.view().total.p50, activity.view().total.finished], [undefined, 1]);
  run(activity, 0);
  run(activity, 2 ** 60);
  assertEquals(activity.view().total.finished, 3);
});
