import { assertEquals } from "tensorlet/assert";
import { assertFails, chatCall, collect, executorOf, textsOf } from "../../test/harness/calls.ts";
import type { Call, Reply } from "./call.ts";
import { type AnyModel, defineModel } from "./define.ts";
import { ModelError } from "./error.ts";

const run = async (model: AnyModel, call: Call) => await collect(executorOf(model)(call));

const talking = (chat: (ctx: { session: { state: unknown }; emit(piece: string): Promise<void> }) => unknown) =>
  defineModel({ session: { init: () => ({ n: 0 }) }, chat: (_, ctx) => chat(ctx as never) as never });

Deno.test("createExecutor() marks a chat's last piece when the handler ends right after it", async () => {
  const yields = talking(async function* () {
    yield "a";
    yield "b";
  });
  const emits = talking(async (ctx) => {
    await ctx.emit("a");
    await ctx.emit("b");
  });
  for (const model of [yields, emits]) {
    const replies = await run(model, chatCall("x"));
    assertEquals(replies.map(({ type }) => type), ["delta", "session", "delta"]);
    assertEquals(textsOf(replies), ["a", "b."]);
  }
});

Deno.test("createExecutor() does not hold a chat's piece back while the handler works on", async () => {
  const gate = Promise.withResolvers<void>();
  const model = talking(async function* () {
    yield "a";
    await gate.promise;
  });
  const replies = executorOf(model)(chatCall("x"))[Symbol.asyncIterator]();
  assertEquals((await replies.next()).value, { type: "delta", index: 0, text: "a", final: false });
  gate.resolve();
  assertEquals((await replies.next()).value, { type: "session", state: { n: 0 } });
  assertEquals((await replies.next()).done, true);
});

Deno.test("createExecutor() gives a chat its session and a copy of its state", async () => {
  const stored = { id: "s", turn: 4, history: [{ role: "user", content: "before" }] as const, state: { n: 1 } };
  let seen: unknown;
  const model = talking(async function* (ctx) {
    seen = structuredClone(ctx.session);
    (ctx.session.state as { n: number }).n++;
    yield "a";
  });
  const replies = await run(model, chatCall("x", { sessionId: "s", session: stored }));
  assertEquals(seen, stored);
  assertEquals(stored.state, { n: 1 });
  assertEquals(replies.find(({ type }) => type === "session"), { type: "session", state: { n: 2 } });
});

Deno.test("createExecutor() gives no state when a chat fails, or when its state cannot be saved", async () => {
  const failing = talking(async function* () {
    yield "a";
    throw new ModelError("aborted", "broke");
  });
  const replies: Reply[] = [];
  await assertFails("aborted", "broke", async () => {
    for await (const reply of executorOf(failing)(chatCall("x"))) replies.push(reply);
  });
  assertEquals(textsOf(replies), ["a"]);
  const unsavable = talking(async function* (ctx) {
    ctx.session.state = () => {};
    yield "a";
  });
  await assertFails("internal", "it is not structured-cloneable", () => run(unsavable, chatCall("x")));
});

Deno.test("createExecutor() gives a chat a new state where its session has none yet", async () => {
  const stored = { id: "s", turn: 1, history: [], state: undefined };
  const model = talking(async function* (ctx) {
    (ctx.session.state as { n: number }).n++;
    yield "a";
  });
  for (const session of [undefined, stored]) {
    const replies = await run(model, chatCall("x", { sessionId: "s", session }));
    assertEquals(replies.find(({ type }) => type === "session"), { type: "session", state: { n: 1 } });
  }
});
