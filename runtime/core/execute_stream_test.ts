import { assert, assertEquals } from "tensorlet/assert";
import { assertFails, chatCall, collect, executorOf, streamCall, textsOf } from "../../test/harness/calls.ts";
import { settled } from "../../test/harness/clock.ts";
import type { Call } from "./call.ts";
import { type AnyModel, defineModel } from "./define.ts";
import { ModelError } from "./error.ts";
import { tensor } from "./tensor.ts";

const run = async (model: AnyModel, call: Call) => await collect(executorOf(model)(call));

const streamOf = (stream: (ctx: { emit(chunk: unknown): Promise<void>; signal: AbortSignal }) => unknown) =>
  defineModel({ stream: (_: unknown, ctx: never) => stream(ctx) as never });

Deno.test("createExecutor() streams tokens, tensors and tokens marked final, by index", async () => {
  const model = streamOf(async function* (ctx) {
    yield "a";
    await ctx.emit("b");
    yield tensor("int8", [3]);
    yield { token: "d", final: false };
    yield { token: "e", final: true };
    yield "never";
  });
  const replies = await run(model, streamCall());
  assertEquals(replies.map((reply) => "index" in reply ? reply.index : -1), [0, 1, 2, 3, 4]);
  assertEquals(textsOf(replies), ["a", "b", "d", "e."]);
  assert(replies[2]?.type === "tensors" && replies[2].output["0"]?.data[0] === 3);
});

Deno.test("createExecutor() stops a generator at max_tokens and runs its finally", async () => {
  let made = 0;
  let cleaned = false;
  const model = streamOf(async function* () {
    try {
      for (;;) yield `${made++}`;
    } finally {
      cleaned = true;
    }
  });
  assertEquals(textsOf(await run(model, streamCall({ maxTokens: 3 }))), ["0", "1", "2."]);
  await settled();
  assertEquals([made, cleaned], [3, true]);
});

Deno.test("createExecutor() runs a generator's finally after a final token, or when the reader leaves", async () => {
  for (const final of [true, false]) {
    let cleaned = false;
    const model = streamOf(async function* () {
      try {
        for (;;) yield { token: "a", final };
      } finally {
        cleaned = true;
      }
    });
    for await (const reply of executorOf(model)(streamCall())) if (reply.type === "delta" && !reply.final) break;
    await settled();
    assert(cleaned);
  }
});

Deno.test("createExecutor() aborts the signal of a handler that emits when the reader has had enough", async () => {
  let refused: unknown;
  let signal: AbortSignal | undefined;
  const model = streamOf(async (ctx) => {
    signal = ctx.signal;
    try {
      for (;;) await ctx.emit("a");
    } catch (error) {
      refused = error;
    }
  });
  assertEquals(textsOf(await run(model, streamCall({ maxTokens: 2 }))), ["a", "a."]);
  await settled();
  assert(refused instanceof ModelError && refused.code === "cancelled" && signal?.aborted);
});

Deno.test("createExecutor() joins a character that a handler cuts in two", async () => {
  const cut = async function* () {
    yield "\ud83d";
    yield "\ude00!";
    yield "\ud83d";
  };
  assertEquals(textsOf(await run(streamOf(cut), streamCall())), ["", "😀!", "", "\ufffd."]);
  assertEquals(textsOf(await run(defineModel({ chat: cut }), chatCall("x"))), ["", "😀!", "\ufffd."]);
});

Deno.test("createExecutor() says what is wrong with a chunk", async () => {
  const give = (chunk: unknown) =>
    streamOf(async function* () {
      yield chunk;
    });
  await assertFails("internal", "a token is no string", () => run(give({ token: 3, final: true }), streamCall()));
  await assertFails("internal", "output 0: got number, wanted a tensor", () => run(give(3), streamCall()));
  for (
    const [returned, text] of [[["a", "b"], "got an array"], ["ab", "got a string"], [
      {},
      "got a value of type object",
    ]] as const
  ) {
    const wrong = defineModel({ stream: (() => returned) as never });
    await assertFails("internal", `${text}, wanted an async generator`, () => run(wrong, streamCall()));
  }
  const model = defineModel({ chat: give(3)["~model"].stream as never });
  await assertFails("internal", "a chat piece is no string", () => run(model, chatCall("x")));
});
