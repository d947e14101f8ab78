// What only a socket shows: statuses, trailers, cancels, deadlines, flow control, limits, shutdown.
import grpc from "@grpc/grpc-js";
import { defineModel, mapNumeric, ModelError } from "tensorlet";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "tensorlet/assert";
import { answer, collect, metadata, serveModels } from "../harness/grpc_client.ts";
import { callRaw, encodeRequest } from "../harness/http2_client.ts";

const affine = defineModel({ predict: ([x]) => mapNumeric(x, (v) => v * 2 + 10, (v) => v * 2n + 10n) });
const counter = defineModel({
  async *stream(_inputs, ctx) {
    for (let i = 0; i < (ctx.maxTokens ?? 5); i++) yield `t${i}`;
  },
});
const parrot = defineModel({
  async *chat(message, ctx) {
    yield `${ctx.session.turn + 1}: ${message.content}`;
  },
});
const sum = defineModel({
  batch: (items) =>
    items.map(({ input: [x] }) => ({
      dtype: "float32",
      shape: [1],
      data: Float32Array.of((x!.data as Float32Array).reduce((a, b) => a + b, 0)),
    })),
});

/** A stream that never ends; tells how far it came and why it stopped. */
function endless() {
  const stopped = Promise.withResolvers<unknown>();
  const state = { tokens: 0 };
  const model = defineModel({
    async *stream(_inputs, ctx) {
      try {
        for (;;) {
          yield "x".repeat(100);
          state.tokens++;
        }
      } finally {
        stopped.resolve(ctx.signal.reason);
      }
    },
  });
  return { model, state, stopped: stopped.promise };
}

Deno.test("grpc: all four modes answer", async () => {
  await using served = await serveModels({ affine, counter, parrot, sum });
  const predicted = await answer<{ output_tensor: number[]; model_version: string }>((done) =>
    served.v1.Predict({ model_id: "affine", input_tensor: [1, 2] }, done)
  );
  assertEquals([predicted.output_tensor, predicted.model_version], [[12, 14], "1"]);
  const chunks = await collect<{ token: string; is_final: boolean }>(
    served.v1.StreamPredict({ model_id: "counter", max_tokens: 2 }),
  );
  assertEquals(chunks.map(({ token, is_final }) => [token, is_final]), [["t0", false], ["t1", true]]);
  const batch = await answer<{ total_processed: number; results: { output_tensor: number[] }[] }>((done) => {
    const call = served.v1.BatchPredict(metadata({ "model-id": "sum" }), done);
    call.write({ id: "a", features: [1, 2] });
    call.end({ id: "b", features: [3] });
  });
  assertEquals([batch.total_processed, batch.results.map((r) => r.output_tensor)], [2, [[3], [3]]]);
  const chat = served.v1.ChatStream(metadata({ "model-id": "parrot" }));
  chat.write({ session_id: "s", content: "hi" });
  chat.end({ session_id: "s", content: "again" });
  const pieces = await collect<{ content: string; finish_reason: boolean }>(chat);
  assertEquals(pieces.map(({ content, finish_reason }) => [content, finish_reason]), [["1: hi", true], [
    "2: again",
    true,
  ]]);
});

Deno.test("grpc: a function's exception stays in the log, its ModelError reaches the client with details", async () => {
  const failing = defineModel({
    predict: ([x]) => {
      if (x!.data[0] === 0) throw new Error("secret detail");
      throw new ModelError("resource_exhausted", "Zeile\neins: zu groß", { details: { retryAfterMs: 1500, limit: 3 } });
    },
  });
  await using served = await serveModels({ failing });
  const predict = (value: number) =>
    answer((done) =>
      served.v1.Predict({ model_id: "failing", input_tensor: [value] }, metadata({ "request-id": "r-1" }), done)
    );
  const internal = await assertRejects(() => predict(0)) as grpc.ServiceError;
  assertEquals(internal.code, grpc.status.INTERNAL);
  assertStringIncludes(internal.details, "r-1");
  assert(!internal.details.includes("secret"));
  const refused = await assertRejects(() => predict(1)) as grpc.ServiceError;
  assertEquals([refused.code, refused.details], [grpc.status.RESOURCE_EXHAUSTED, "Zeile\neins: zu groß"]);
  const [details] = refused.metadata.get("grpc-status-details-bin");
  assertStringIncludes(details!.toString(), "google.rpc.RetryInfo");
});

Deno.test("grpc: ten tokens and then a failure: the client gets all ten, then the status", async () => {
  const burst = defineModel({
    async *stream() {
      for (let i = 0; i < 10; i++) yield `t${i}`;
      throw new Error("secret detail");
    },
  });
  await using served = await serveModels({ burst });
  // Bare HTTP/2: grpc-js's own client drops the messages that it has not handed out when an error status comes.
  const { body, trailers } = await callRaw(
    served.address,
    "/inference.v1.ModelInference/StreamPredict",
    encodeRequest("burst"),
  );
  assertEquals(new TextDecoder().decode(body).match(/t\d/g), Array.from({ length: 10 }, (_, i) => `t${i}`));
  assertEquals(trailers["grpc-status"], String(grpc.status.INTERNAL));
});

Deno.test("grpc: a request beyond the limit is refused by the limit's and the option's name", async () => {
  await using served = await serveModels({ affine }, { limits: { maxMessageBytes: 1000 } });
  const call = (length: number) =>
    answer((done) => served.v1.Predict({ model_id: "affine", input_tensor: new Array(length).fill(1) }, done));
  const error = await assertRejects(() => call(1000)) as grpc.ServiceError;
  assertEquals(error.code, grpc.status.RESOURCE_EXHAUSTED);
  assertStringIncludes(error.details, "the limit is 1000 (option maxMessageBytes)");
  await call(10);
});

Deno.test("grpc: an answer beyond the limit is refused likewise", async () => {
  const big = defineModel({ predict: () => ({ dtype: "float32", shape: [1000], data: new Float32Array(1000) }) });
  await using served = await serveModels({ big }, { limits: { maxMessageBytes: 1000 } });
  const error = await assertRejects(() =>
    answer((done) => served.v1.Predict({ model_id: "big" }, done))
  ) as grpc.ServiceError;
  assertEquals(error.code, grpc.status.RESOURCE_EXHAUSTED);
  assertStringIncludes(error.details, "the limit is 1000 (option maxMessageBytes)");
});

Deno.test("grpc: a client that leaves aborts the handler's signal and runs its finally", async () => {
  const { model, stopped } = endless();
  await using served = await serveModels({ endless: model });
  const stream = served.v1.StreamPredict({ model_id: "endless" });
  stream.on("error", () => {});
  stream.once("data", () => stream.cancel());
  const reason = await stopped;
  assert(reason instanceof ModelError);
  assertEquals(reason.code, "cancelled");
});

Deno.test("grpc: a deadline reaches the handler and ends the call", async () => {
  const { model, stopped } = endless();
  await using served = await serveModels({ endless: model });
  const stream = served.v1.StreamPredict({ model_id: "endless" }, { deadline: Date.now() + 100 });
  const error = await assertRejects(() => collect(stream)) as grpc.ServiceError;
  assertEquals(error.code, grpc.status.DEADLINE_EXCEEDED);
  const reason = await stopped;
  assert(reason instanceof ModelError);
  assert(["deadline_exceeded", "cancelled"].includes(reason.code));
});

Deno.test("grpc: a reader that takes nothing stops the generator", async () => {
  const { model, state, stopped } = endless();
  await using served = await serveModels({ endless: model });
  const stream = served.v1.StreamPredict({ model_id: "endless" });
  stream.on("error", () => {});
  await new Promise<void>((resolve) => stream.once("data", () => (stream.pause(), resolve())));
  // The generator stands still once the windows are full: the count no longer changes over many turns of the loop.
  let before = -1;
  for (let still = 0; still < 50;) {
    still = state.tokens === before ? still + 1 : 0;
    before = state.tokens;
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert(state.tokens > 0 && state.tokens < 20_000, `${state.tokens} tokens of 100 characters`);
  stream.cancel();
  await stopped;
});

Deno.test("grpc: health follows the functions, and a watch ends with the server", async () => {
  const loading = Promise.withResolvers<void>();
  const slow = defineModel({ load: () => loading.promise, predict: ([x]) => x! });
  await using served = await serveModels({ slow });
  const check = () => answer<{ status: string | number }>((done) => served.health.Check({ service: "" }, done));
  const notServing = (await check()).status;
  const watch = served.health.Watch({ service: "slow" });
  const statuses: unknown[] = [];
  const ended = new Promise<grpc.ServiceError>((resolve) => watch.on("error", resolve));
  const sawTwo = new Promise<void>((resolve) => {
    watch.on("data", ({ status }: { status: number }) => {
      statuses.push(status);
      if (statuses.length === 1) loading.resolve();
      if (statuses.length === 2) resolve();
    });
  });
  await sawTwo;
  const serving = (await check()).status;
  assertEquals([notServing, serving], [2, 1]);
  await served.server.shutdown({ graceMs: 1000 });
  assertEquals((await ended).code, grpc.status.UNAVAILABLE);
  assertEquals(statuses, [2, 1, 2]);
});

Deno.test("grpc: a shutdown lets calls in progress finish, and ends those that do not", async () => {
  const gate = Promise.withResolvers<void>();
  const waiting = defineModel({
    async *stream() {
      yield "first";
      await gate.promise;
      yield "last";
    },
  });
  const { model } = endless();
  const served = await serveModels({ waiting, endless: model });
  await using _ = served;
  const finishing = served.v1.StreamPredict({ model_id: "waiting" });
  const tokens: string[] = [];
  const begun = new Promise<void>((resolve) => finishing.once("data", () => resolve()));
  finishing.on("data", ({ token }: { token: string }) => tokens.push(token));
  const finished = new Promise<unknown>((resolve) => finishing.on("end", () => resolve("end")).on("error", resolve));
  const stuck = served.v1.StreamPredict({ model_id: "endless" });
  const stuckBegun = new Promise<void>((resolve) => stuck.once("data", () => resolve()));
  const stuckEnded = new Promise<grpc.ServiceError>((resolve) => stuck.on("error", resolve));
  stuck.on("data", () => {});
  await Promise.all([begun, stuckBegun]);
  const stopping = served.server.shutdown({ graceMs: 300 });
  gate.resolve();
  assertEquals(await finished, "end");
  assertEquals(tokens.join(" "), "first last ");
  assertEquals((await stuckEnded).code, grpc.status.UNAVAILABLE);
  await stopping;
  assertEquals(served.server.state, "stopped");
});

Deno.test("grpc: an idle chat does not hold up a shutdown", async () => {
  await using served = await serveModels({ parrot });
  const chat = served.v1.ChatStream(metadata({ "model-id": "parrot" }));
  const ended = new Promise<grpc.ServiceError>((resolve) => chat.on("error", resolve));
  const answered = new Promise((resolve) => chat.once("data", resolve));
  chat.on("data", () => {});
  chat.write({ content: "hi" });
  await answered;
  await served.server.shutdown({ graceMs: 3_600_000 });
  assertEquals((await ended).code, grpc.status.UNAVAILABLE);
});
