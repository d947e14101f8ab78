import { assert, assertEquals, assertFalse, assertStrictEquals } from "tensorlet/assert";
import {
  assertFails,
  batchCall,
  batchItem,
  chatCall,
  collect,
  executorOf,
  floats,
  NEVER,
  predictCall,
  recordLog,
  SILENT,
  streamCall,
  textsOf,
} from "../../test/harness/calls.ts";
import { settled } from "../../test/harness/clock.ts";
import type { Call, Reply } from "./call.ts";
import { type AnyModel, defineModel, resolveModel } from "./define.ts";
import { ModelError } from "./error.ts";
import { runCall } from "./execute.ts";
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

// Handlers of each kind that go on until their gate opens, whatever becomes of their call.
function stubborn(gate: Promise<void>) {
  const wait = () => gate;
  const items = () => gate.then(() => [tensor("int8", [1])]);
  async function* slowFinally() {
    try {
      for (;;) yield "a";
    } finally {
      await gate;
    }
  }
  async function* deaf() {
    yield "a";
    await gate;
  }
  const models: Record<string, [AnyModel, (signal: AbortSignal) => Call]> = {
    "predict": [defineModel({ predict: wait as never }), (signal) => predictCall({ signal })],
    "predict for a stream": [defineModel({ predict: wait as never }), (signal) => streamCall({ signal })],
    "predict for a batch": [
      defineModel({ predict: wait as never }),
      (signal) => batchCall([batchItem("a"), batchItem("b")], { signal }),
    ],
    "batch": [defineModel({ batch: items }), (signal) => batchCall([batchItem("a")], { signal })],
    "batch for a predict": [defineModel({ batch: items }), (signal) => predictCall({ signal })],
    "stream with a slow finally": [defineModel({ stream: slowFinally }), (signal) => streamCall({ signal })],
    "stream in an await": [defineModel({ stream: deaf }), (signal) => streamCall({ signal })],
    "stream that emits": [defineModel({ stream: wait }), (signal) => streamCall({ signal })],
    "chat with a slow finally": [defineModel({ chat: slowFinally }), (signal) => chatCall("x", { signal })],
    "chat in an await": [defineModel({ chat: deaf }), (signal) => chatCall("x", { signal })],
    "chat that emits": [defineModel({ chat: wait }), (signal) => chatCall("x", { signal })],
  };
  return Object.entries(models);
}

function running(model: AnyModel, call: Call) {
  const started = runCall({ model: resolveModel(model, "model"), loaded: undefined, log: SILENT }, call);
  const state = { isSettled: false };
  started.settled.then(() => state.isSettled = true);
  return { ...started, state };
}

Deno.test("runCall().settled waits for a handler that ignores the abort of its call", async () => {
  for (const fails of [false, true]) {
    const gate = Promise.withResolvers<void>();
    const states = [];
    for (const [name, [model, callOf]] of stubborn(gate.promise)) {
      const opened = Promise.withResolvers<void>();
      const controller = new AbortController();
      const { replies, state } = running(model, callOf(controller.signal));
      const outcome = (async () => {
        try {
          for await (const _ of replies) opened.resolve();
          return "ended";
        } catch (error) {
          return (error as ModelError).code;
        }
      })();
      await Promise.race([opened.promise, settled()]);
      controller.abort();
      assertEquals(await outcome, "cancelled", name);
      await settled();
      assertFalse(state.isSettled, name);
      states.push(state);
    }
    if (fails) gate.reject(new Error("late"));
    else gate.resolve();
    await settled();
    assertEquals(states.map(({ isSettled }) => isSettled), new Array(11).fill(true));
  }
});

Deno.test("runCall().settled waits for a handler whose reader has left, or has had enough", async () => {
  const gate = Promise.withResolvers<void>();
  const states = [];
  for (const [name, [model, callOf]] of stubborn(gate.promise)) {
    if (!name.includes("slow finally") && name !== "chat in an await") continue;
    for (const maxTokens of [1, undefined]) {
      const { replies, state } = running(model, { ...callOf(NEVER), maxTokens });
      for await (const _ of replies) if (maxTokens === undefined || name.startsWith("chat")) break;
      await settled();
      assertFalse(state.isSettled, name);
      states.push(state);
    }
  }
  gate.resolve();
  await settled();
  assertEquals(states.map(({ isSettled }) => isSettled), new Array(6).fill(true));
});

Deno.test("runCall().settled resolves with the replies of a handler that ends with them, or fails", async () => {
  const failing = () => Promise.reject(new ModelError("aborted", "no"));
  const fails = defineModel({ predict: failing, stream: failing, batch: failing, chat: failing });
  const input = floats(1);
  const calls: [AnyModel, Call][] = [
    [predicts, predictCall({ input })],
    [batches, batchCall([batchItem("a", input)])],
    [streams, streamCall({ input })],
    [streams, streamCall({ input: floats(1, 2, 3), maxTokens: 2 })],
    [chats, chatCall("x")],
    [chats, predictCall()], // unimplemented
    [fails, predictCall()],
    [fails, streamCall()],
    [fails, batchCall([])],
    [fails, chatCall("x")],
  ];
  for (const [model, call] of calls) {
    const { replies, settled } = running(model, call);
    await collect(replies).catch(() => {});
    await settled;
  }
});

Deno.test("runCall() begins the work of a thenable once", async () => {
  let began = 0;
  const query = {
    then(resolve: (value: readonly AnyTensor[]) => void) {
      began++;
      resolve([tensor("int8", [1]) as AnyTensor]);
    },
  };
  const { replies } = running(defineModel({ predict: () => query as never }), predictCall());
  await collect(replies);
  assertEquals(began, 1);
});

const rows = (...values: readonly number[]) => ({ "0": tensor("float32", values, [values.length]) as AnyTensor });
const stacking = (predict: (data: Float32Array) => Float32Array) =>
  defineModel({
    input: { dtype: "float32", shape: [-1] },
    output: { dtype: "float32", shape: [-1] },
    batching: { maxSize: 8 },
    predict: ({ data }) => predict(data),
  });
const outcomes = async (replies: AsyncIterable<Reply>) =>
  (await collect(replies)).map((reply) =>
    reply.type === "tensors"
      ? [...reply.output["0"]!.data as Float32Array]
      : reply.type === "failure" && reply.error.code
  );

Deno.test("a batch of a predict with a batch dim is one call of it, cut apart again", async () => {
  const seen: number[][] = [];
  const invoke = executorOf(stacking((data) => (seen.push([...data]), data.map((x) => x * 2))));
  const items = [batchItem("a", rows(1, 2)), batchItem("b", rows()), batchItem("c", rows(3))];
  assertEquals(await outcomes(invoke(batchCall(items))), [[2, 4], [], [6]]);
  assertEquals(seen, [[1, 2, 3]]);
});

Deno.test("a batch that cannot be stacked, or whose answer cannot be cut apart, is one predict each", async () => {
  let calls = 0;
  const sum = stacking((data) => (calls++, Float32Array.of(data.reduce((a, b) => a + b, 0))));
  const items = [batchItem("a", rows(1, 2)), batchItem("b", rows(3))];
  assertEquals(await outcomes(executorOf(sum)(batchCall(items))), [[3], [3]]);
  assertEquals(calls, 3);
  const twice = executorOf(stacking((data) => (calls++, data)));
  assertEquals(await outcomes(twice(batchCall([items[0]!, batchItem("b", rows(3), { k: "v" })]))), [[1, 2], [3]]);
  assertEquals(calls, 5);
});

Deno.test("the one that a stacked predict fails for fails alone", async () => {
  const invoke = executorOf(stacking((data) => {
    if (data.includes(-1)) throw new ModelError("invalid_argument", "negative");
    return data;
  }));
  const items = [1, -1, 3].map((value) => batchItem(`${value}`, rows(value)));
  assertEquals(await outcomes(invoke(batchCall(items))), [[1], "invalid_argument", [3]]);
});

Deno.test("a batch handler that throws is asked for each of gathered items, not for one caller's", async () => {
  const sizes: number[] = [];
  const model = defineModel({
    input: { dtype: "float32" },
    output: { dtype: "float32" },
    batch(items) {
      sizes.push(items.length);
      if (items.some(({ input }) => input.data[0] === -1)) throw new ModelError("invalid_argument", "negative");
      return items.map(({ input }) => input.data);
    },
  });
  const items = [1, -1, 3].map((value) => batchItem(`${value}`, rows(value)));
  const gathered = executorOf(model)(batchCall(items, { gathered: true }));
  assertEquals(await outcomes(gathered), [[1], "invalid_argument", [3]]);
  assertEquals(sizes, [3, 1, 1, 1]);
  await assertFails("invalid_argument", "negative", () => collect(executorOf(model)(batchCall(items))));
});
