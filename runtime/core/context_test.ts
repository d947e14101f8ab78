import { assert, assertEquals, assertStrictEquals } from "tensorlet/assert";
import { predictCall, SILENT } from "../../test/harness/calls.ts";
import { FakeClock } from "../../test/harness/clock.ts";
import { createContext, remainingMs } from "./context.ts";

Deno.test("remainingMs() counts down to 0 and stays there", async () => {
  using clock = new FakeClock();
  const deadline = Date.now() + 100;
  assertEquals(remainingMs(deadline), 100);
  await clock.advance(60);
  assertEquals(remainingMs(deadline), 40);
  await clock.advance(60);
  assertEquals(remainingMs(deadline), 0);
  assertEquals(remainingMs(undefined), Infinity);
});

Deno.test("createContext() hands the call on", async () => {
  using clock = new FakeClock();
  const deadline = Date.now() + 100;
  const call = predictCall({ id: "r-1", deadline, maxTokens: 3, params: { a: "b" } });
  const { signal } = new AbortController();
  const context = createContext(call, signal, { weights: 1 }, SILENT);
  assertEquals([context.requestId, context.maxTokens, context.deadline?.getTime()], ["r-1", 3, deadline]);
  assertEquals([context.params, context.model], [{ a: "b" }, { weights: 1 }]);
  assertStrictEquals(context.signal, signal);
  assertStrictEquals(context.metadata, call.metadata);
  await clock.advance(99);
  assertEquals(context.remainingMs(), 1);
});

Deno.test("createContext() has no deadline when the call has none", () => {
  const context = createContext(predictCall(), new AbortController().signal, undefined, SILENT);
  assert(context.deadline === undefined && context.remainingMs() === Infinity);
});
