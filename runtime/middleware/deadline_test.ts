import { assert, assertEquals } from "tensorlet/assert";
import { assertFails, batchCall, chatCall, collect, predictCall, streamCall } from "../../test/harness/calls.ts";
import { FakeClock, settled } from "../../test/harness/clock.ts";
import type { Call, Invoke } from "../core/call.ts";
import { abortable } from "../core/signal.ts";
import { deadline } from "./deadline.ts";

const options = { unaryTimeoutMs: 60_000 };

// Ends a call when the test says so; keeps what it was called with.
function waiting() {
  const calls: Call[] = [];
  const end = Promise.withResolvers<void>();
  const invoke: Invoke = async function* (call) {
    calls.push(call);
    await abortable(end.promise, call.signal);
    yield { type: "delta", index: 0, text: "done" };
  };
  return { calls, end: end.resolve, invoke: deadline(options)(invoke) };
}

Deno.test("deadline() aborts a call's signal at its deadline", async () => {
  using clock = new FakeClock();
  const { calls, invoke } = waiting();
  const outcome = collect(invoke(streamCall({ deadline: Date.now() + 50 }))).catch((error) => error.code);
  await clock.advance(49);
  assert(!calls[0]?.signal.aborted);
  await clock.advance(1);
  assertEquals([calls[0]?.signal.aborted, await outcome], [true, "deadline_exceeded"]);
});

Deno.test("deadline() refuses a call whose deadline has passed, without running it", async () => {
  using _clock = new FakeClock();
  const { calls, invoke } = waiting();
  await assertFails(
    "deadline_exceeded",
    "deadline passed",
    () => collect(invoke(predictCall({ deadline: Date.now() }))),
  );
  assertEquals(calls, []);
});

Deno.test("deadline() gives unary calls without one the server's maximum, and no others", async () => {
  using clock = new FakeClock();
  const { calls, end, invoke } = waiting();
  const outcomes = [predictCall(), streamCall(), batchCall([]), chatCall("x")].map((call) =>
    collect(invoke(call)).then(() => "ok", (error) => error.code)
  );
  await settled();
  assertEquals(calls.map((call) => call.deadline), [Date.now() + 60_000, undefined, undefined, undefined]);
  await clock.advance(60_000);
  end();
  assertEquals(await Promise.all(outcomes), ["deadline_exceeded", "ok", "ok", "ok"]);
});

Deno.test("deadline() takes its timer back when the call ends", async () => {
  using clock = new FakeClock();
  const { end, invoke } = waiting();
  const outcome = collect(invoke(predictCall()));
  await settled();
  assertEquals(clock.armed, 1);
  end();
  await outcome;
  assertEquals(clock.armed, 0);
});

Deno.test("deadline() waits for a deadline that is years away", async () => {
  using clock = new FakeClock();
  const { calls, end, invoke } = waiting();
  const years = 3 * 365 * 24 * 60 * 60 * 1000;
  const outcome = collect(invoke(predictCall({ deadline: Date.now() + years })));
  await clock.advance(years - 1);
  assert(!calls[0]?.signal.aborted);
  end();
  await outcome;
  assertEquals(clock.armed, 0);
});

Deno.test("deadline() passes the caller's own abort on", async () => {
  const controller = new AbortController();
  const { invoke } = waiting();
  const outcome = collect(invoke(predictCall({ signal: controller.signal }))).catch((error) => error.code);
  await settled();
  controller.abort();
  assertEquals(await outcome, "cancelled");
});
