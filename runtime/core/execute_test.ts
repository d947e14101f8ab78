import { assert, assertEquals, assertStrictEquals } from "tensorlet/assert";
import {
  assertFails,
  batchCall,
  batchItem,
  chatCall,
  collect,
  executorOf,
  floats,
  predictCall,
  recordLog,
  streamCall,
  textsOf,
} from "../../test/harness/calls.ts";
import { settled } from "../../test/harness/clock.ts";
import type { Reply } from "./call.ts";
import { type AnyModel, defineModel } from "./define.ts";
import { ModelError } from "./error.ts";
import { type AnyTensor, tensor } from "./tensor.ts";

const FLOAT = { dtype: "float32" } as const;
const double = (values: Float32Array) => values.map((value) => value * 2);
const predicts = defineModel({ input: FLOAT, output: FLOAT, predict: ({ data }) => double(data) });
const batches = defineModel({
  input: FLOAT,
  output: FLOAT,
  batch: (items) => items.map(({ input }) => double(input.data)),
});
const streams = defineModel({
  input: FLOAT,
  output: FLOAT,
  async *stream({ data }) {
    for (const value of data) yield `${value}`;
  },
});
const chats = defineModel({
  async *chat(message) {
    yield message.content;
  },
});

const valuesOf = (replies: readonly Reply[]) =>
  replies.map((reply) => reply.type === "tensors" ? [...reply.output["0"]!.data as Float32Array] : reply.type);
const run = async (model: AnyModel, call: Parameters<ReturnType<typeof executorOf>>[0]) =>
  await collect(executorOf(model)(call));

Deno.test("createExecutor() answers each kind of call with its handler, or with the one that stands in", async () => {
  const items = [batchItem("a", floats(1)), batchItem("b", floats(2))];
  for (const model of [predicts, batches]) {
    assertEquals(valuesOf(await run(model, predictCall({ input: floats(1, 2) }))), [[2, 4]]);
    assertEquals(valuesOf(await run(model, streamCall({ input: floats(1, 2) }))), [[2, 4]]);
    assertEquals(valuesOf(await run(model, batchCall(items))), [[2], [4]]);
  }
  assertEquals(textsOf(await run(streams, streamCall({ input: floats(1, 2) }))), ["1", "2"]);
  assertEquals(textsOf(await run(chats, chatCall("hi"))), ["hi."]);
});

Deno.test("createExecutor() is unimplemented when no handler can answer", async () => {
  const others = [[chats, predictCall()], [streams, predictCall()], [streams, batchCall([])], [
    predicts,
    chatCall("x"),
  ]];
  for (const [model, call] of others as [AnyModel, Parameters<typeof run>[1]][]) {
    await assertFails("unimplemented", `Function "model" has no ${call.kind} handler`, () => run(model, call));
  }
});

Deno.test("createExecutor() prefers the kind's own handler", async () => {
  const model = defineModel({
    output: { dtype: "string" },
    predict: () => ["predict"],
    batch: (items) => items.map(() => ["batch"]),
    stream: async function* () {
      yield "stream";
    },
  });
  const first = async (call: Parameters<typeof run>[1]) => {
    const [reply] = await run(model, call);
    return reply?.type === "tensors" ? reply.output["0"]!.data[0] : textsOf([reply!])[0];
  };
  assertEquals(await first(predictCall()), "predict");
  assertEquals(await first(batchCall([batchItem("a")])), "batch");
  assertEquals(await first(streamCall()), "stream");
});

Deno.test("createExecutor() marks a predict's answer as the last chunk of a stream", async () => {
  const [reply] = await run(predicts, streamCall({ input: floats(1) }));
  assert(reply?.type === "tensors" && reply.final === true && reply.index === 0);
});

Deno.test("createExecutor() gives handlers what they declare: one tensor, several by name, or a list", async () => {
  const input = { a: tensor("int8", [1]), b: tensor("int8", [2]) } as Record<string, AnyTensor>;
  const seen: unknown[] = [];
  const see = (given: unknown) => (seen.push(given), []);
  const named = { a: { dtype: "int8" }, b: { dtype: "int8" } } as const;
  await run(defineModel({ input: named, predict: see }), predictCall({ input }));
  await run(defineModel({ input: FLOAT, predict: see }), predictCall({ input: floats(3) }));
  await run(defineModel({ predict: see }), predictCall({ input: { "0": input.a!, "1": input.b! } }));
  assertEquals(seen, [input, floats(3)["0"], [input.a, input.b]]);
});

Deno.test("createExecutor() gives the model, the params and the request id, and logs with it", async () => {
  const { log, records } = recordLog();
  const model = defineModel({
    load: () => ({ scale: 3 }),
    predict(_, ctx) {
      ctx.log.info("Running", { scale: ctx.model.scale, factor: ctx.params.factor });
      return [];
    },
  });
  const call = predictCall({ id: "r-9", params: { factor: "7" } });
  await collect(executorOf(model, { scale: 3 }, log)(call));
  assertEquals(records, [
    { level: "info", message: "Running", fields: { requestId: "r-9", scale: 3, factor: "7" } },
  ]);
});

Deno.test("createExecutor() hands on what a handler throws, at once or later", async () => {
  const error = new ModelError("out_of_range", "too far");
  const thrown = {
    predict: () => {
      throw error;
    },
  };
  const rejected = { predict: () => Promise.reject(error) };
  for (const handlers of [thrown, rejected]) {
    const got = await run(defineModel(handlers), predictCall()).catch((caught) => caught);
    assertStrictEquals(got, error);
  }
});

Deno.test("createExecutor() settles at once when the call aborts, though the handler ignores it", async () => {
  const stuck = () => new Promise<never>(() => {});
  const model = defineModel({ predict: stuck, stream: stuck, batch: stuck, chat: stuck });
  const controller = new AbortController();
  const { signal } = controller;
  const calls = [
    predictCall({ signal }),
    streamCall({ signal }),
    batchCall([batchItem("a")], { signal }),
    chatCall("x", { signal }),
  ];
  const outcomes = calls.map((call) => run(model, call).catch((error) => error.code));
  await settled();
  controller.abort(new ModelError("deadline_exceeded", "late"));
  assertEquals(await Promise.all(outcomes), calls.map(() => "deadline_exceeded"));
});

Deno.test("createExecutor() says that the call aborted, not what the handler threw because of it", async () => {
  const controller = new AbortController();
  const model = defineModel({
    predict() {
      controller.abort();
      throw new Error("socket closed");
    },
  });
  await assertFails("cancelled", "", () => run(model, predictCall({ signal: controller.signal })));
});

Deno.test("createExecutor() runs no handler when the call has aborted before", async () => {
  let ran = 0;
  const handler = () => (ran++, Promise.reject(new Error("ran")));
  const model = defineModel({ predict: handler, stream: handler, batch: handler, chat: handler });
  const signal = AbortSignal.abort();
  for (
    const call of [
      predictCall({ signal }),
      streamCall({ signal }),
      batchCall([], { signal }),
      chatCall("x", { signal }),
    ]
  ) {
    await assertFails("cancelled", "", () => run(model, call));
  }
  assertEquals(ran, 0);
});

Deno.test("createExecutor() says how many results a batch gave and how many were wanted", async () => {
  const give = (results: unknown) => defineModel({ batch: () => results as [] });
  const two = batchCall([batchItem("a"), batchItem("b")]);
  await assertFails("internal", "batch gave 1 results, expected 2", () => run(give([tensor("int8", [1])]), two));
  await assertFails("internal", "batch gave undefined results, expected 2", () => run(give(undefined), two));
  await assertFails("internal", "batch gave 0 results, expected 1", () => run(give([]), predictCall()));
});

Deno.test("createExecutor() fails only the items of a batch that fail", async () => {
  const refusal = new ModelError("out_of_range", "too far");
  const byBatch = defineModel({ batch: () => [tensor("int8", [1]), refusal] });
  const byPredict = defineModel({
    predict: (_, ctx) => ctx.params.who === "a" ? tensor("int8", [1]) : Promise.reject(refusal),
  });
  for (const model of [byBatch, byPredict]) {
    const [good, bad] = await run(model, batchCall([batchItem("1", {}, { who: "a" }), batchItem("2")]));
    assertEquals(valuesOf([good!]), [[1]]);
    assert(bad?.type === "failure" && bad.index === 1);
    assertStrictEquals(bad.error, refusal);
  }
  await assertFails("out_of_range", "too far", () => run(defineModel({ batch: () => [refusal] }), predictCall()));
});

Deno.test("createExecutor() gives an item's predict the call's request id, and its log the item's", async () => {
  const { log, records } = recordLog();
  const model = defineModel({
    predict: (_, ctx) => {
      ctx.log.info(ctx.requestId);
      return [];
    },
  });
  await collect(executorOf(model, undefined, log)(batchCall([batchItem("vector-7")])));
  assertEquals(records.map(({ message, fields }) => [message, fields.item]), [["call-1", "vector-7"]]);
});

Deno.test("createExecutor() hides what an item's predict throws", async () => {
  const model = defineModel({ predict: () => Promise.reject(new Error("password")) });
  const [reply] = await run(model, batchCall([batchItem("a")]));
  assert(reply?.type === "failure" && reply.error.code === "internal" && !reply.error.message.includes("password"));
});

Deno.test("createExecutor() runs eight items at once where there is only predict, and keeps their order", async () => {
  let running = 0;
  let most = 0;
  const model = defineModel({
    output: { dtype: "string" },
    async predict(_, ctx) {
      most = Math.max(most, ++running);
      await settled();
      running--;
      return [ctx.params.who!];
    },
  });
  const ids = Array.from({ length: 20 }, (_, i) => `${i}`);
  const replies = await run(model, batchCall(ids.map((id) => batchItem("", {}, { who: id }))));
  assertEquals(most, 8);
  assertEquals(replies.map((reply) => reply.type === "tensors" && reply.output["0"]!.data[0]), ids);
});

Deno.test("createExecutor() aborts an item with its own signal and with the call's", async () => {
  const aborts: string[] = [];
  const model = defineModel({
    predict: (_, ctx) => {
      ctx.signal.addEventListener("abort", () => aborts.push(ctx.params.who!), { once: true });
      return new Promise<never>(() => {});
    },
  });
  const [own, whole] = [new AbortController(), new AbortController()];
  const items = [{ ...batchItem("", {}, { who: "a" }), signal: own.signal }, batchItem("", {}, { who: "b" })];
  const outcome = run(model, batchCall(items, { signal: whole.signal })).catch((error) => error.code);
  await settled();
  own.abort();
  await settled();
  assertEquals(aborts, ["a"]);
  whole.abort(new ModelError("deadline_exceeded", "late"));
  assertEquals(await outcome, "deadline_exceeded");
  assertEquals(aborts, ["a", "b"]);
});

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
  assertEquals(valuesOf(replies)[2], [3]);
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
