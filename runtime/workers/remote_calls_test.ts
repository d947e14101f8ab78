import { assert, assertEquals, assertFalse, assertInstanceOf, assertStrictEquals } from "tensorlet/assert";
import {
  batchCall,
  batchItem,
  chatCall,
  collect,
  floats,
  predictCall,
  streamCall,
  textsOf,
} from "../../test/harness/calls.ts";
import { settled } from "../../test/harness/clock.ts";
import { type MemoryPorts, startFunction } from "../../test/harness/ports.ts";
import type { Reply } from "../core/call.ts";
import { ModelError } from "../core/error.ts";
import { type AnyTensor, tensor } from "../core/tensor.ts";
import { createContextKey, NO_VALUES, withValue } from "../core/values.ts";

const FLOAT = { dtype: "float32" } as const;
const LARGE = tensor("float32", new Float32Array(400_000)) as AnyTensor;
const types = ({ fromInstance }: MemoryPorts) => fromInstance.slice(2).map(({ type }) => type);
const codeOf = (replies: AsyncIterable<Reply>) => collect(replies).then(() => "ok", (error) => error.code as string);

Deno.test("Instance.run() gives the replies of each kind of call, failures of a batch's items as ModelErrors", async () => {
  const { instance, ports } = await startFunction({
    input: FLOAT,
    output: FLOAT,
    predict({ data }) {
      if (data[0] === 0) throw new ModelError("out_of_range", "zero", { details: { wanted: "more" } });
      return data.map((value) => value * 2);
    },
    async *stream({ data }) {
      for (const value of data) yield value < 0 ? Float32Array.of(value) : { token: `${value}`, final: value === 9 };
    },
    async *chat(message, ctx) {
      yield `${ctx.session.turn}: ${message.content}`;
    },
    session: { init: () => ({ n: 0 }) },
  });
  const run = async (call: Parameters<typeof instance.run>[0]) => {
    const { replies, settled } = instance.run(call);
    const all = await collect(replies);
    await settled;
    return all;
  };
  const [answer] = await run(predictCall({ input: floats(1, 2) }));
  assertEquals(answer, { type: "tensors", index: 0, output: { "0": tensor("float32", [2, 4]) }, final: true });
  const streamed = await run(streamCall({ input: floats(1, -2, 9, 4) }));
  assertEquals(textsOf(streamed), ["1", "9."]);
  assert(streamed[1]?.type === "tensors" && streamed[1].output["0"]?.data[0] === -2);
  const [good, bad] = await run(batchCall([batchItem("a", floats(3)), batchItem("b", floats(0))]));
  assert(good?.type === "tensors" && good.output["0"]?.data[0] === 6);
  assert(bad?.type === "failure" && bad.index === 1);
  assertInstanceOf(bad.error, ModelError);
  assertEquals([bad.error.code, bad.error.message, bad.error.details], ["out_of_range", "zero", { wanted: "more" }]);
  const session = { id: "s", turn: 3, history: [], state: { n: 7 } };
  const turn = await run(chatCall("hi", { session, sessionId: "s" }));
  assertEquals([turn[0], textsOf(turn)], [{ type: "session", state: { n: 7 } }, ["3: hi."]]);
  assertEquals(ports.terminations, []);
});

Deno.test("Instance.run() takes one message each way for a predict, and no credit", async () => {
  const { instance, ports } = await startFunction({ input: FLOAT, output: FLOAT, predict: ({ data }: never) => data });
  const { replies, settled } = instance.run(predictCall({ input: { "0": LARGE } }));
  await collect(replies);
  await settled;
  assertEquals(ports.toInstance.map(({ type }) => type), ["call"]);
  const [, , reply] = ports.fromInstance;
  assertEquals([types(ports), reply?.type === "reply" && reply.end], [["reply"], true]);
});

Deno.test("Instance.run() sends the end with the last reply where it is known to be the last, else after it", async () => {
  const stream = async function* (input: readonly AnyTensor[]) {
    yield "a";
    if (input.length > 0) yield { token: "b", final: true };
  };
  const { instance, ports } = await startFunction({ stream });
  await collect(instance.run(streamCall({ input: floats(1) })).replies);
  assertEquals(types(ports), ["reply", "reply"]);
  await collect(instance.run(streamCall()).replies);
  assertEquals(types(ports).slice(2), ["reply", "end"]);
});

Deno.test("Instance.run() hands over what a call carries", async () => {
  const user = createContextKey("user", { name: "nobody" });
  const depth = createContextKey("depth", 5);
  const seen: unknown[] = [];
  const { instance } = await startFunction({
    predict(_, ctx) {
      const { requestId, params, maxTokens, deadline, metadata, values } = ctx;
      seen.push(requestId, params, maxTokens, deadline?.getTime(), [...metadata], values.get(user), values.get(depth));
      return [];
    },
  });
  const deadline = Date.now() + 60_000;
  const metadata = new Headers([["x-user", "ann"], ["x-tag", "a"], ["x-tag", "b"]]);
  const values = withValue(NO_VALUES, user, { name: "ann" });
  const params = { top: 3, mode: "x", exact: true };
  await collect(instance.run(predictCall({ id: "r-7", params, maxTokens: 9, deadline, metadata, values })).replies);
  assertEquals(seen, ["r-7", params, 9, deadline, [["x-tag", "a, b"], ["x-user", "ann"]], { name: "ann" }, 5]);
});

/** A function that counts the chunks that it has made, each of so many bytes; 0 = a token. */
async function counting(bytes: number, chunks = Infinity) {
  const state = { made: 0, cleaned: false };
  const remote = await startFunction({
    output: { dtype: "uint8" },
    stream: (async function* () {
      try {
        while (state.made < chunks) {
          state.made++;
          yield bytes === 0 ? "x" : new Uint8Array(bytes);
        }
      } finally {
        state.cleaned = true;
      }
    }) as never,
  });
  const controller = new AbortController();
  const run = remote.instance.run(streamCall({ signal: controller.signal }));
  return { ...remote, state, controller, run, reader: run.replies[Symbol.asyncIterator]() };
}

Deno.test("Instance.run() is at most 16 replies ahead of a slow reader", async () => {
  const { reader, state, ports } = await counting(0);
  await settled();
  assertEquals(state.made, 16);
  let taken = 0;
  for (const times of [7, 1, 8, 16, 3]) {
    for (let i = 0; i < times; i++) await reader.next();
    taken += times;
    await settled();
    assert(state.made <= taken + 16 && state.made > taken + 8, `${state.made} made, ${taken} taken`);
  }
  assertEquals(ports.toInstance.filter(({ type }) => type === "credit").length, 4);
  await reader.return?.();
});

Deno.test("Instance.run() is at most a megabyte ahead of a slow reader, or one reply", async () => {
  for (const [bytes, ahead] of [[300_000, 4], [1024 * 1024, 1], [3_000_000, 1], [1024 * 1024 - 1, 2]] as const) {
    const { reader, state } = await counting(bytes);
    await settled();
    assertEquals(state.made, ahead, `${bytes}`);
    for (let taken = 1; taken < 12; taken++) {
      await reader.next();
      await settled();
      assert(state.made <= taken + ahead, `${bytes}: ${state.made} made, ${taken} taken`);
    }
    await reader.return?.();
  }
});

Deno.test("Instance.run() counts the bytes of texts", async () => {
  let made = 0;
  const { instance } = await startFunction({
    output: { dtype: "string" },
    stream: (async function* () {
      for (;;) yield (made++, ["x".repeat(400_000), "y".repeat(200_000)]);
    }) as never,
  });
  const reader = instance.run(streamCall()).replies[Symbol.asyncIterator]();
  await settled();
  assertEquals(made, 2);
  await reader.return?.();
});

Deno.test("Instance.run() delivers everything to whatever reader, small replies and large ones", async () => {
  for (const [bytes, chunks] of [[0, 1000], [70_000, 200], [500_000, 40], [1_000_000, 20], [2_000_000, 5]] as const) {
    for (const isSlow of [false, true]) {
      const { run } = await counting(bytes, chunks);
      let count = 0;
      for await (const _ of run.replies) {
        if (isSlow && count++ % 10 === 0) await settled();
        else if (!isSlow) count++;
      }
      await run.settled;
      assertEquals(count, chunks, `${bytes}`);
    }
  }
});

Deno.test("Instance.run() aborts the handler's signal with the call's reason, and rejects with it at once", async () => {
  let seen: ModelError | undefined;
  const gate = Promise.withResolvers<void>();
  const { instance } = await startFunction({
    async predict(_, ctx) {
      await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve, { once: true }));
      seen = ctx.signal.reason;
      await gate.promise;
      return [];
    },
  });
  const controller = new AbortController();
  const reason = new ModelError("deadline_exceeded", "late", { details: { after: 5 }, cause: new Error("clock") });
  const run = instance.run(predictCall({ signal: controller.signal }));
  const outcome = collect(run.replies).catch((error) => error);
  await settled();
  controller.abort(reason);
  assertStrictEquals(await outcome, reason);
  await settled();
  assertInstanceOf(seen, ModelError);
  assertEquals([seen.code, seen.message, seen.details], ["deadline_exceeded", "late", { after: 5 }]);
  gate.resolve();
  await run.settled;
});

Deno.test("Instance.run() tells an instance of a call that was aborted before it began", async () => {
  let ran = false;
  const { instance, ports } = await startFunction({ predict: () => (ran = true, []) });
  const run = instance.run(predictCall({ signal: AbortSignal.abort() }));
  assertEquals(await codeOf(run.replies), "cancelled");
  await run.settled;
  assertEquals(await codeOf(instance.run(predictCall()).replies), "ok");
  assert(ran);
  const signal = AbortSignal.abort();
  const batch = instance.run(batchCall([{ ...batchItem("a"), signal }, { ...batchItem("b"), signal }], { signal }));
  assertEquals(await codeOf(batch.replies), "cancelled");
  await batch.settled;
  const cancels = ports.toInstance.flatMap((message) => message.type === "cancel" ? [message.item] : []);
  assertEquals(cancels, [undefined, undefined]); // one for each call, none for its items
});

Deno.test("Instance.run() ends a generator that waits for its reader when the call aborts", async () => {
  const { run, state, controller, reader } = await counting(0);
  await settled();
  assertEquals(state, { made: 16, cleaned: false });
  controller.abort(new ModelError("deadline_exceeded", "late"));
  const error = await reader.next().catch((error) => error);
  assertEquals(error.code, "deadline_exceeded"); // not what was sent ahead
  await run.settled;
  assertEquals(state, { made: 16, cleaned: true });
});

Deno.test("Instance.run() cancels the call when its reader leaves", async () => {
  for (const taken of [0, 1, 20]) {
    const { run, state, ports, reader } = await counting(0);
    for (let i = 0; i < taken; i++) await reader.next();
    await settled();
    assertEquals(await reader.return?.(), { done: true, value: undefined });
    await run.settled;
    assert(state.cleaned);
    const cancels = ports.toInstance.filter(({ type }) => type === "cancel");
    assertEquals(cancels.map((message) => message.type === "cancel" && message.reason.code), ["cancelled"]);
  }
});

Deno.test("Instance.run() cancels nothing that has ended", async () => {
  const { run, controller, ports } = await counting(0, 3);
  for await (const _ of run.replies) await settled();
  controller.abort();
  await run.replies[Symbol.asyncIterator]().return?.();
  await run.settled;
  assertEquals(ports.toInstance.map(({ type }) => type), ["call"]);
});

Deno.test("Instance.run() aborts one item of a batch, not the others", async () => {
  const aborted: string[] = [];
  const gates = new Map<string, () => void>();
  const { instance, ports } = await startFunction({
    predict: (_, ctx) =>
      new Promise<AnyTensor[]>((resolve, reject) => {
        const who = ctx.params.who!;
        gates.set(who, () => resolve([]));
        ctx.signal.addEventListener("abort", () => (aborted.push(who), reject(ctx.signal.reason)), { once: true });
      }),
  });
  const [own, whole] = [new AbortController(), new AbortController()];
  const item = (who: string, signal: AbortSignal) => ({ ...batchItem(who, {}, { who }), signal });
  const items = [item("a", whole.signal), item("b", own.signal), item("c", own.signal)];
  const run = instance.run(batchCall(items, { signal: whole.signal }));
  const outcome = collect(run.replies);
  await settled();
  own.abort(new ModelError("deadline_exceeded", "late"));
  await settled();
  assertEquals(aborted, ["b", "c"]);
  gates.get("a")!();
  const replies = await outcome;
  assertEquals(replies.map((reply) => reply.type === "failure" ? reply.error.code : reply.type), [
    "tensors",
    "deadline_exceeded",
    "deadline_exceeded",
  ]);
  await run.settled;

  const second = instance.run(batchCall(items.slice(0, 1), { signal: whole.signal }));
  const ended = codeOf(second.replies);
  await settled();
  whole.abort();
  assertEquals(await ended, "cancelled");
  const cancels = ports.toInstance.flatMap((message) => message.type === "cancel" ? [message.item] : []);
  assertEquals(cancels, [1, 2, undefined]); // an item that has the call's signal ends with it
});

Deno.test("Instance.run() rejects with the function's ModelError, and its cause as text for the log", async () => {
  const cause = new RangeError("too far");
  cause.name = "Odd";
  const details = { retryAfterMs: 5, onDone: () => {}, bare: Object.assign(Object.create(null), { call() {} }) };
  const { instance } = await startFunction({
    predict: () => Promise.reject(new ModelError("failed_precondition", "Cannot yet", { details, cause })),
  });
  const error = await collect(instance.run(predictCall()).replies).catch((error) => error);
  assertInstanceOf(error, ModelError);
  assertEquals([error.code, error.message, error.details], ["failed_precondition", "Cannot yet", {
    retryAfterMs: 5,
    onDone: "function onDone",
    bare: "(a value without a text)",
  }]);
  assertInstanceOf(error.cause, Error);
  assertEquals([error.cause.name, error.cause.message, error.cause.stack], ["Odd", "too far", cause.stack]);
});

Deno.test("Instance.run() hides whatever else the function throws, and never waits for ever because of it", async () => {
  const odd = Object.assign(new Error("x"), { message: () => {}, stack: 5 });
  const thrown: [unknown, string][] = [
    [new TypeError("password"), "TypeError: password"],
    ["text", "Error: text"],
    [Symbol("s"), "Error: Symbol(s)"],
    [Object.create(null), "Error: (a value without a text)"],
    [odd, "Error: function message"],
    [null, "Error: null"],
  ];
  for (const [value, text] of thrown) {
    const { instance } = await startFunction({ predict: () => Promise.reject(value) });
    const run = instance.run(predictCall({ id: "r-3" }));
    const error = await collect(run.replies).catch((error) => error);
    assertInstanceOf(error, ModelError, text);
    assertEquals([error.code, error.message, `${error.cause}`], [
      "internal",
      "The function failed (request id r-3); the server's log has the cause",
      text,
    ]);
    await run.settled;
  }
});

Deno.test("Instance.run() gives what came before a failure to the reader first", async () => {
  const { instance } = await startFunction({
    async *stream() {
      yield "a";
      yield "b";
      throw new ModelError("aborted", "broke");
    },
  });
  const reader = instance.run(streamCall()).replies[Symbol.asyncIterator]();
  await settled();
  assertEquals([(await reader.next()).value, (await reader.next()).value], [
    { type: "delta", index: 0, text: "a", final: false },
    { type: "delta", index: 1, text: "b", final: false },
  ]);
  assertEquals(await reader.next().catch((error) => error.code), "aborted");
});

Deno.test("Instance.run() fails a call whose reply cannot be sent", async () => {
  const { instance, ports } = await startFunction({
    predict: () => [],
    stream: async function* () {
      yield "a";
    },
  }); // deno-fmt-ignore
  const { post } = ports.instance;
  ports.instance.post = (message) => {
    if (message.type === "reply") throw new ModelError("resource_exhausted", "It is too large");
    post(message);
  };
  for (const call of [predictCall(), streamCall()]) {
    const run = instance.run(call);
    assertEquals(await codeOf(run.replies), "resource_exhausted");
    await run.settled;
  }
});

Deno.test("Instance.run().settled waits for a handler that goes on after its call's end", async () => {
  const gate = Promise.withResolvers<void>();
  const { instance, ports } = await startFunction({
    predict: () => gate.promise.then(() => []),
    async *stream() {
      try {
        yield { token: "a", final: true };
      } finally {
        await gate.promise;
      }
    },
  });
  const controller = new AbortController();
  const aborted = instance.run(predictCall({ signal: controller.signal }));
  const answered = instance.run(streamCall());
  const outcomes = [codeOf(aborted.replies), codeOf(answered.replies)];
  await settled();
  controller.abort();
  assertEquals(await Promise.all(outcomes), ["cancelled", "ok"]);
  let isSettled = false;
  const both = Promise.all([aborted.settled, answered.settled]).then(() => isSettled = true);
  await settled();
  assertFalse(isSettled);
  assertEquals(
    ports.fromInstance.flatMap((message) => message.type === "end" ? [[message.error?.code, message.settled]] : []),
    [[undefined, false], ["cancelled", false]],
  );
  gate.resolve();
  await both;
  assertEquals(types(ports).slice(-2), ["settled", "settled"]);
});

Deno.test("Instance.run() runs calls side by side", async () => {
  const gates = new Map<string, () => void>();
  const { instance } = await startFunction({
    output: { dtype: "string" },
    predict: (_, ctx) => new Promise((resolve) => gates.set(ctx.requestId, () => resolve([ctx.requestId]))),
  });
  const ids = ["a", "b", "c"];
  const answers = ids.map(async (id) => {
    const [reply] = await collect(instance.run(predictCall({ id })).replies);
    return reply?.type === "tensors" && reply.output["0"]?.data[0];
  });
  await settled();
  for (const id of ids.toReversed()) gates.get(id)!();
  assertEquals(await Promise.all(answers), ids);
});

Deno.test("Instance.run() throws when a call cannot be sent, and leaves nothing of it behind", async () => {
  const { instance } = await startFunction({ predict: () => [] });
  const values = withValue(NO_VALUES, createContextKey("callback", () => {}), () => {});
  const thrown = await (async () => await collect(instance.run(predictCall({ values })).replies))().catch((e) => e);
  assertEquals(thrown.name, "DataCloneError");
  assertEquals(await codeOf(instance.run(predictCall()).replies), "ok");
});
