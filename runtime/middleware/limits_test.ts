import { assertEquals } from "tensorlet/assert";
import { assertFails, collect, predictCall } from "../../test/harness/calls.ts";
import { settled } from "../../test/harness/clock.ts";
import type { Invoke, PredictCall } from "../core/call.ts";
import { ModelError } from "../core/error.ts";
import { limits } from "./limits.ts";

// Calls that run until the test ends them, by id.
function gated(maxInFlight: number, maxQueue: number) {
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  const next: Invoke = async function* (call) {
    started.push(call.id);
    await new Promise<void>((resolve) => ends.set(call.id, resolve));
    if (call.id.startsWith("bad")) throw new ModelError("aborted", "bad");
    yield { type: "delta", index: 0, text: "done" };
  };
  const invoke = limits({ maxInFlight, maxQueue })(next);
  return {
    started,
    run: (id: string, options: Partial<PredictCall> = {}) =>
      collect(invoke(predictCall({ ...options, id }))).then(() => "ok", (error) => error.code),
    end: async (...ids: readonly string[]) => {
      for (const id of ids) ends.get(id)!();
      await settled();
    },
  };
}

Deno.test("limits() runs as many calls as it may, the others first come first served", async () => {
  const { started, run, end } = gated(2, 2);
  const outcomes = ["a", "b", "c", "d"].map((id) => run(id));
  await settled();
  assertEquals(started, ["a", "b"]);
  await end("b");
  assertEquals(started, ["a", "b", "c"]);
  await end("a");
  await end("c", "d");
  assertEquals([started, await Promise.all(outcomes)], [["a", "b", "c", "d"], ["ok", "ok", "ok", "ok"]]);
});

Deno.test("limits() refuses a call when the queue is full, saying when to try again", async () => {
  const invoke = limits({ maxInFlight: 0, maxQueue: 0 })(async function* () {});
  const error = await assertFails("resource_exhausted", "0 calls run (option maxInFlight) and 0 wait", () => {
    return collect(invoke(predictCall()));
  });
  assertEquals(error.details, { retryAfterMs: 1000 });
  const { run, end } = gated(1, 1);
  const outcomes = [run("a"), run("b")];
  assertEquals(await run("c"), "resource_exhausted");
  await end("a");
  await end("b");
  assertEquals(await Promise.all(outcomes), ["ok", "ok"]);
});

Deno.test("limits() counts again from nothing when all calls have ended, failed ones too", async () => {
  const { started, run, end } = gated(1, 0);
  for (const id of ["a", "bad-b", "c"]) {
    const outcome = run(id);
    await end(id);
    assertEquals(await outcome, id.startsWith("bad") ? "aborted" : "ok");
  }
  assertEquals(started, ["a", "bad-b", "c"]);
});

Deno.test("limits() frees a call's place when its reader leaves", async () => {
  const invoke = limits({ maxInFlight: 1, maxQueue: 0 })(async function* () {
    for (let index = 0;; index++) yield { type: "delta", index, text: "a" };
  });
  for (let i = 0; i < 3; i++) {
    for await (const _ of invoke(predictCall())) break;
  }
});

Deno.test("limits() lets a waiting call go when it is aborted, and its place in the line too", async () => {
  const { started, run, end } = gated(1, 1);
  const controller = new AbortController();
  const first = run("a");
  const aborted = run("b", { signal: controller.signal });
  await settled();
  controller.abort();
  assertEquals(await aborted, "cancelled");
  const next = run("c");
  await end("a");
  await end("c");
  assertEquals([started, await first, await next], [["a", "c"], "ok", "ok"]);
});

Deno.test("limits() hands a place on once when it comes in the same moment as the abort", async () => {
  // The place is on its way for a few microtasks: the abort comes at each of them, and before and after.
  for (let delay = 0; delay < 30; delay++) {
    const controller = new AbortController();
    const { started, run, end } = gated(1, 2);
    const outcomes = [run("a"), run("b", { signal: controller.signal }), run("c")];
    await settled();
    const ending = end("a");
    for (let i = 0; i < delay; i++) await undefined;
    controller.abort();
    await ending;
    assertEquals(started.length, 2, `after ${delay} microtasks`);
    if (started[1] === "b") await end("b");
    await end("c");
    assertEquals(await Promise.all(outcomes), ["ok", started.includes("b") ? "ok" : "cancelled", "ok"]);
    const later = [run("d"), run("e")]; // there is one place, as before
    await settled();
    assertEquals(started.at(-1), "d");
    await end("d");
    await end("e");
    await Promise.all(later);
  }
});
