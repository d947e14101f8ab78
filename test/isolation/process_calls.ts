// Calls of a function in a process of its own, without a server around it.
import { assert, assertEquals, assertLess, assertStringIncludes } from "tensorlet/assert";
import type { Reply } from "../../runtime/core/call.ts";
import { ModelError } from "../../runtime/core/error.ts";
import { createLogger } from "../../runtime/core/log.ts";
import type { AnyTensor, NamedTensors } from "../../runtime/core/tensor.ts";
import { CREDIT_REPLIES } from "../../runtime/workers/messages.ts";
import { assertFails, batchCall, batchItem, chatCall, floats, predictCall, streamCall } from "../harness/calls.ts";
import { type Child, startChild } from "../harness/child.ts";

const ECHO = "{ predict: (inputs) => inputs }";

async function outputOf(child: Child, input: NamedTensors): Promise<NamedTensors> {
  const [reply] = await child.run(predictCall({ input }));
  return (reply as Reply & { readonly type: "tensors" }).output;
}

Deno.test("a process gets and answers every kind of tensor exactly, small, large and empty", async () => {
  await using child = await startChild(ECHO);
  const large = 150_528;
  const tensors: readonly AnyTensor[] = [
    { dtype: "bool", shape: [2], data: Uint8Array.of(0, 1) },
    { dtype: "int8", shape: [2], data: Int8Array.of(-128, 127) },
    { dtype: "int16", shape: [1], data: Int16Array.of(-32768) },
    { dtype: "int32", shape: [1], data: Int32Array.of(-(2 ** 31)) },
    { dtype: "int64", shape: [2, 1], data: BigInt64Array.of(-(2n ** 63n), 2n ** 63n - 1n) },
    { dtype: "uint8", shape: [large], data: Uint8Array.from({ length: large }, (_, i) => i) },
    { dtype: "uint16", shape: [0], data: new Uint16Array(0) },
    { dtype: "uint32", shape: [1], data: Uint32Array.of(2 ** 32 - 1) },
    { dtype: "uint64", shape: [], data: BigUint64Array.of(2n ** 64n - 1n) },
    { dtype: "float16", shape: [2], data: Float16Array.of(1.5, -0) },
    { dtype: "bfloat16", shape: [1], data: Uint16Array.of(0x7fc0) },
    { dtype: "float32", shape: [large], data: Float32Array.from({ length: large }, (_, i) => i / 3) },
    { dtype: "float64", shape: [3, 0], data: new Float64Array(0) },
    // A view into a larger buffer, at an odd place.
    { dtype: "uint8", shape: [20_000], data: Uint8Array.from({ length: 30_000 }, (_, i) => i).subarray(1, 20_001) },
    { dtype: "string", shape: [4], data: ["", "\u00fc\u{1f600}", "\ud800", "x".repeat(100_000)] },
    { dtype: "bytes", shape: [3], data: [new Uint8Array(0), Uint8Array.of(0, 255), new Uint8Array(70_000).fill(7)] },
  ];
  const input = Object.fromEntries(tensors.map((tensor, i) => [`${i}`, tensor]));
  assertEquals(await outputOf(child, input), input);
  assertEquals(await outputOf(child, {}), {});
  const many = await Promise.all(Array.from({ length: 50 }, (_, i) => outputOf(child, floats(i))));
  assertEquals(many, Array.from({ length: 50 }, (_, i) => floats(i)));
});

Deno.test("a process may go on changing what it answered", async () => {
  await using child = await startChild(`{
    async *stream() {
      const data = new Float32Array(100_000);
      for (let i = 0; i < 5; i++) yield { dtype: "float32", shape: [data.length], data: data.fill(i) };
      data.fill(-1);
    },
  }`);
  const firsts = (await child.run(streamCall())).map((reply) =>
    reply.type === "tensors" && new Set(reply.output["0"]!.data as Float32Array)
  );
  assertEquals(firsts, [0, 1, 2, 3, 4].map((i) => new Set([i])));
});

Deno.test("a stream in a process waits for a reader that is slow", async () => {
  await using child = await startChild(`{
    params: { stop: { type: "boolean", default: false } },
    load: () => ({ made: 0 }),
    async *stream(_inputs, ctx) {
      while (!ctx.signal.aborted) { ctx.model.made++; yield "again"; }
    },
    predict: (_inputs, ctx) => ({ dtype: "int32", shape: [1], data: Int32Array.of(ctx.model.made) }),
  }`);
  const made = async () => ((await outputOf(child, {}))["0"]!.data as Int32Array)[0]!;
  const replies = child.instance.run(streamCall()).replies[Symbol.asyncIterator]();
  await replies.next();
  const before = await made();
  // Each call goes to the process and back: what it would have sent ahead is there by then.
  for (let i = 0; i < 20; i++) assertLess(await made(), CREDIT_REPLIES + 3);
  for (let i = 0; i < 100; i++) await replies.next();
  assertLess(await made(), 100 + before + CREDIT_REPLIES + 3);
  await replies.return!();
});

Deno.test("an abort and a deadline reach the handler in a process, with their reason", async () => {
  await using child = await startChild(`{
    async *stream(_inputs, ctx) {
      yield String(ctx.remainingMs() > 50_000);
      await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
      ctx.log.info("aborted", { code: ctx.signal.reason.code });
    },
    predict: () => [],
  }`);
  for (const code of ["cancelled", "deadline_exceeded"] as const) {
    const controller = new AbortController();
    const run = child.instance.run(streamCall({ signal: controller.signal, deadline: Date.now() + 60_000 }));
    const replies = run.replies[Symbol.asyncIterator]();
    assertEquals((await replies.next()).value, { type: "delta", index: 0, text: "true", final: false });
    controller.abort(new ModelError(code, "enough"));
    await assertFails(code, "enough", () => replies.next());
    await run.settled;
    assertEquals(child.records.at(-1)?.fields.code, code);
  }
});

Deno.test("an item of a batch in a process is cancelled by itself", async () => {
  const controller = new AbortController();
  const log = createLogger(() => controller.abort(new ModelError("cancelled", "not this one")));
  await using child = await startChild(
    `{
      async predict([x], ctx) {
        if (x.data[0] === 2) {
          ctx.log.info("waits");
          await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
        }
        return x;
      },
    }`,
    { log },
  );
  const items = [1, 2, 3].map((i) => ({
    ...batchItem(`${i}`, floats(i)),
    ...i === 2 && { signal: controller.signal },
  }));
  const outcomes = (await child.run(batchCall(items))).map((reply) =>
    reply.type === "failure" ? reply.error.code : reply.type
  );
  assertEquals(outcomes, ["tensors", "cancelled", "tensors"]);
});

Deno.test("failures in a process keep code, message and details, and hide what is not meant for callers", async () => {
  await using child = await startChild(`{
    predict([x]) {
      if (x.data[0] === 1) throw new ModelError("aborted", "busy", { details: { retryAfterMs: 5, at: 10n } });
      throw new RangeError("secret detail");
    },
  }`);
  const told = await assertFails("aborted", "busy", () => child.run(predictCall({ input: floats(1) })));
  assertEquals(told.details, { retryAfterMs: 5, at: 10n });
  const hidden = await assertFails("internal", "request id", () => child.run(predictCall({ input: floats(2) })));
  assert(!hidden.message.includes("secret"), hidden.message);
  assert(hidden.cause instanceof Error);
  assertEquals([hidden.cause.name, hidden.cause.message], ["RangeError", "secret detail"]);
  assertStringIncludes(hidden.cause.stack!, "function.ts");
});

Deno.test("a session's state crosses to a process and back as it is", async () => {
  await using child = await startChild(`{
    session: { init: () => ({ seen: new Map(), at: new Date(0), count: 0n, list: new Set([1]) }) },
    async *chat(message, ctx) {
      const { state } = ctx.session;
      state.seen.set(message.content, state.at);
      state.count++;
      yield String(state.seen.size);
    },
  }`);
  let state: unknown;
  for (const [turn, content] of ["a", "b"].entries()) {
    const session = state === undefined ? undefined : { id: "session-1", turn, history: [], state };
    for (const reply of await child.run(chatCall(content, { session }))) {
      if (reply.type === "session") state = reply.state;
    }
  }
  const at = new Date(0);
  assertEquals(state, { seen: new Map([["a", at], ["b", at]]), at, count: 2n, list: new Set([1]) });
});
