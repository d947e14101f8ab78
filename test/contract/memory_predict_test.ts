// inference.v1.ModelInference: Predict and StreamPredict, bytes in and out.
import { defineModel, ModelError, tensor } from "tensorlet";
import { assert, assertEquals, assertGreater } from "tensorlet/assert";
import { createTestServer } from "tensorlet/testing";
import { FakeClock, settled } from "../harness/clock.ts";
import { call, type MessageResult } from "../harness/messages.ts";

const facts = defineModel({
  input: { dtype: "float32", shape: [-1, 2] },
  output: { sum: { dtype: "float32" }, shape: { dtype: "int64" }, text: { dtype: "string" } },
  params: { top: { type: "integer", default: 1 } },
  predict: ({ data, shape }, ctx) => ({
    sum: Float32Array.of(data.reduce((a, b) => a + b, 0), ctx.params.top, ctx.maxTokens ?? -1),
    shape: BigInt64Array.from(shape, BigInt),
    text: ["x"],
  }),
});

Deno.test("Predict shapes the flat tensor and answers with the first output", async () => {
  await using server = await createTestServer({ facts });
  const { code, replies } = await call(server, "predict", [{ model_id: "facts", input_tensor: [1, 2, 3, 4] }]);
  assertEquals([code, replies.length], ["ok", 1]);
  assertEquals([replies[0].output_tensor, replies[0].model_version], [[10, 1, -1], "1"]);
  assertGreater(replies[0].latency_ms, 0);
});

Deno.test("Predict reads shape, output, params and max_tokens", async () => {
  await using server = await createTestServer({ facts });
  const ask = async (params: Record<string, string>, metadata: HeadersInit = {}) => {
    const request = { input_tensor: [1, 2, 3, 4], params, max_tokens: 4_294_967_295 };
    const { code, message, replies } = await call(server, "predict", [request], { metadata });
    return code === "ok" ? replies[0].output_tensor : [code, message];
  };
  assertEquals(await ask({ output: "shape", shape: "2,2" }), [2, 2]);
  assertEquals((await ask({ top: "7" }))[1], 7);
  assertEquals((await ask({}, { "param-top": "8" }))[1], 8);
  assertEquals((await ask({}))[2], 4_294_967_296); // the nearest float32
  assertEquals((await ask({ top: "x" }))[0], "invalid_argument");
  assertEquals((await ask({ other: "1" }))[1], 'Cannot accept param "other": the function has only "top"');
  assertEquals(await ask({ shape: "4" }), [
    "invalid_argument",
    "Cannot accept input 0: got shape [4], wanted [-1,2] (-1 = any)",
  ]);
  assertEquals((await ask({ output: "text" }))[0], "failed_precondition");
  assertEquals(
    (await ask({ output: "none" }))[1],
    'Cannot choose output "none": the function has "sum", "shape", "text"',
  );
});

Deno.test("Predict does not run a function that has no such output", async () => {
  let ran = 0;
  const counted = defineModel({ output: { y: { dtype: "int8" } }, predict: () => (ran++, { y: new Int8Array(1) }) });
  await using server = await createTestServer({ counted });
  assertEquals((await call(server, "predict", [{ params: { output: "z" } }])).code, "invalid_argument");
  assertEquals(ran, 0);
});

const chunks = ({ replies }: MessageResult) =>
  replies.map(({ index, token, is_final }) => `${index} ${token}${is_final ? "." : ""}`);

const streaming = (stream: (ctx: { emit(chunk: unknown): Promise<void>; maxTokens: number | undefined }) => unknown) =>
  defineModel({ stream: (_, ctx) => stream(ctx as never) as never });

Deno.test("StreamPredict numbers the tokens and ends with an empty final chunk", async () => {
  const words = streaming(async function* () {
    yield "a";
    yield "";
    yield "b";
  });
  await using server = await createTestServer({ words });
  const result = await call(server, "stream", [{}]);
  assertEquals([result.code, chunks(result)], ["ok", ["0 a", "1 ", "2 b", "3 ."]]);
  assertEquals(result.trailers.get("tokens"), "3");
  for (const name of ["latency-ms", "time-to-first-token-ms"]) assert(Number(result.trailers.get(name)) >= 0, name);
});

Deno.test("StreamPredict marks the chunk that the handler says is final, or the max_tokens-th", async () => {
  let cleaned = 0;
  const endless = streaming(async function* ({ maxTokens }) {
    try {
      for (let i = 0;; i++) yield maxTokens ? `${i}` : { token: `${i}`, final: i === 1 };
    } finally {
      cleaned++;
    }
  });
  await using server = await createTestServer({ endless });
  const byHandler = await call(server, "stream", [{}]);
  assertEquals([chunks(byHandler), byHandler.trailers.get("tokens")], [["0 0", "1 1."], "2"]);
  const byBound = await call(server, "stream", [{ max_tokens: 3 }]);
  assertEquals([chunks(byBound), byBound.trailers.get("tokens")], [["0 0", "1 1", "2 2."], "3"]);
  await settled();
  assertEquals(cleaned, 2);
});

Deno.test("StreamPredict of a handler that gives nothing is one empty final chunk", async () => {
  await using server = await createTestServer({ mute: streaming(async function* () {}) });
  const result = await call(server, "stream", [{ max_tokens: 5 }]);
  assertEquals([chunks(result), result.trailers.get("tokens")], [["0 ."], "0"]);
  assertEquals(result.trailers.has("time-to-first-token-ms"), false);
});

Deno.test("StreamPredict gives yielded and emitted tokens in order", async () => {
  const mixed = streaming(async function* (ctx) {
    yield "a";
    await ctx.emit("b");
    await ctx.emit({ token: "c", final: false });
    yield tensor("string", ["d"]);
  });
  await using server = await createTestServer({ mixed });
  assertEquals(chunks(await call(server, "stream", [{}])), ["0 a", "1 b", "2 c", "3 d", "4 ."]);
});

Deno.test("StreamPredict sends predict's answer as one chunk where it is a text", async () => {
  const text = defineModel({ output: { dtype: "string" }, predict: () => ["hello"] });
  const number = defineModel({ output: { dtype: "int8" }, predict: () => new Int8Array(1) });
  const many = defineModel({ output: { dtype: "string" }, predict: () => ["a", "b"] });
  await using server = await createTestServer({ text, number, many });
  assertEquals(chunks(await call(server, "stream", [{ model_id: "text" }])), ["0 hello."]);
  for (const model_id of ["number", "many"]) {
    const { code, message } = await call(server, "stream", [{ model_id }]);
    assertEquals(code, "failed_precondition");
    assert(message.includes("StreamPredict carries text; use inference.InferenceService/Predict"), message);
  }
});

Deno.test("StreamPredict sends what came before a failure, and its trailers", async () => {
  const failing = streaming(async function* () {
    yield "a";
    throw new ModelError("data_loss", "the rest is gone");
  });
  await using server = await createTestServer({ failing });
  const result = await call(server, "stream", [{}]);
  assertEquals([chunks(result), result.code, result.message], [["0 a"], "data_loss", "the rest is gone"]);
  assertEquals(result.trailers.get("tokens"), "1");
});

Deno.test("StreamPredict aborts the handler when the client leaves or its deadline passes", async () => {
  using clock = new FakeClock();
  const aborted: boolean[] = [];
  let started = Promise.withResolvers<void>();
  const waiting = defineModel({
    async *stream(_, ctx) {
      yield "a";
      started.resolve();
      try {
        await new Promise((_, reject) => ctx.signal.addEventListener("abort", reject, { once: true }));
      } finally {
        aborted.push(ctx.signal.aborted);
      }
    },
  });
  await using server = await createTestServer({ waiting });
  const controller = new AbortController();
  const left = call(server, "stream", [{}], { signal: controller.signal });
  await started.promise;
  controller.abort();
  const { code, replies } = await left;
  assertEquals([code, replies.length], ["cancelled", 1]);
  started = Promise.withResolvers();
  const late = call(server, "stream", [{}], { timeoutMs: 50 });
  await started.promise;
  await clock.advance(50);
  assertEquals((await late).code, "deadline_exceeded");
  await settled();
  assertEquals(aborted, [true, true]);
});

Deno.test("StreamPredict is resumed by its request id, with its numbering, without running again", async () => {
  using _clock = new FakeClock();
  let ran = 0;
  const counter = defineModel({
    input: { dtype: "float32", shape: [2] },
    async *stream() {
      ran++;
      yield* ["a", "b", "c"];
    },
  });
  await using server = await createTestServer({ counter });
  const ask = (from?: string, metadata: HeadersInit = { "request-id": "r" }) => {
    const params = from === undefined ? {} : { resume_from: from };
    const request = { model_id: "counter", params, ...from === undefined && { input_tensor: [1, 2] } };
    return call(server, "stream", [request], { metadata });
  };
  assertEquals(chunks(await ask()), ["0 a", "1 b", "2 c", "3 ."]);
  assertEquals(chunks(await ask("1")), ["1 b", "2 c", "3 ."]);
  const last = await ask("3");
  assertEquals([chunks(last), last.trailers.get("tokens")], [["3 ."], "0"]);
  assertEquals((await ask()).code, "already_exists");
  assertEquals((await ask("4")).code, "out_of_range");
  assertEquals((await ask("-1")).code, "invalid_argument");
  assertEquals((await ask("0", {})).code, "invalid_argument");
  assertEquals((await ask("0", { "request-id": "é" })).code, "invalid_argument");
  assertEquals((await ask("0", { "request-id": "other" })).code, "not_found");
  assertEquals(ran, 1);
});
