import { defineModel, type HttpRoute, type Interceptor, ModelError, type ProtocolAdapter, tensor } from "tensorlet";
import { assert, assertEquals, assertInstanceOf, assertRejects, assertStrictEquals } from "tensorlet/assert";
import { createTestServer, testModel } from "tensorlet/testing";
import { assertFails, collect } from "../test/harness/calls.ts";
import { FakeClock, settled } from "../test/harness/clock.ts";

const scale = defineModel({
  input: { dtype: "float32", shape: [-1] },
  output: { dtype: "float32" },
  params: { factor: { type: "number", default: 2 } },
  predict: ({ data }, ctx) => data.map((value) => value * ctx.params.factor),
});

Deno.test("testModel() takes bare arrays or whole tensors and gives whole tensors", async () => {
  await using model = await testModel(scale);
  const doubled = tensor("float32", [2, 4]);
  assertEquals(await model.predict(Float32Array.of(1, 2)), doubled);
  assertEquals(await model.predict(tensor("float32", [1, 2])), doubled);
  assertEquals((await model.predict(Float32Array.of(1), { params: { factor: 3 } })).data, Float32Array.of(3));
});

Deno.test("testModel() runs the real checks", async () => {
  await using model = await testModel(scale);
  await assertFails("invalid_argument", 'got dtype "int8", wanted "float32"', () => {
    return model.predict(tensor("int8", [1]) as never);
  });
  await assertFails("invalid_argument", "got shape [1,1], wanted [-1]", () => {
    return model.predict(tensor("float32", [1], [1, 1]));
  });
  await assertFails("invalid_argument", 'param "factor": got "x", wanted a number', () => {
    return model.predict(Float32Array.of(1), { params: { factor: "x" as never } });
  });
});

Deno.test("testModel() takes and gives tensors by name, or in order where none is declared", async () => {
  const named = defineModel({
    input: { a: { dtype: "string" }, b: { dtype: "int8", optional: true } },
    output: { n: { dtype: "int32" }, has: { dtype: "bool" } },
    predict: ({ a, b }) => ({ n: Int32Array.of(a.data.length), has: Uint8Array.of(b ? 1 : 0) }),
  });
  await using model = await testModel(named);
  const { n, has } = await model.predict({ a: ["x", "y"] });
  assertEquals([n.data[0], has.data[0]], [2, 0]);
  await using untyped = await testModel(defineModel({ predict: (inputs) => inputs.toReversed() }));
  const [first] = await untyped.predict([tensor("int8", [1]), tensor("string", ["last"])]);
  assertEquals(first?.data, ["last"]);
});

Deno.test("testModel() uses a given model instead of running load, or runs it and unloads it", async () => {
  const steps: string[] = [];
  const loading = defineModel({
    load: () => (steps.push("load"), { name: "real" }),
    unload: (model) => void steps.push(`unload ${model.name}`),
    output: { dtype: "string" },
    predict: (_, ctx) => [ctx.model.name],
  });
  {
    await using model = await testModel(loading, { model: { name: "fake" } });
    assertEquals((await model.predict([])).data, ["fake"]);
  }
  {
    await using model = await testModel(loading);
    assertEquals((await model.predict([])).data, ["real"]);
  }
  assertEquals(steps, ["unload fake", "load", "unload real"]);
});

Deno.test("testModel() hands options on: the request id, metadata, deadline and name", async () => {
  using _clock = new FakeClock();
  const curious = defineModel({
    output: { dtype: "string" },
    predict: (_, ctx) => [ctx.requestId, ctx.metadata.get("x-user") ?? "", `${ctx.remainingMs()}`],
  });
  await using model = await testModel(curious, { name: "curious" });
  const { data } = await model.predict([], { requestId: "r", metadata: { "X-User": "ann" }, timeoutMs: 50 });
  assertEquals(data, ["r", "ann", "50"]);
  assertEquals((await model.predict([])).data[2], "60000"); // the server's maximum
  assert(model.logs.some(({ message, fields }) => message === "call" && fields.model === "curious"));
});

Deno.test("testModel() ends a call at its deadline or by its signal", async () => {
  using clock = new FakeClock();
  const stuck = () => new Promise<never>(() => {});
  await using model = await testModel(defineModel({ predict: stuck, stream: stuck, chat: stuck }));
  const controller = new AbortController();
  for (const options of [{ timeoutMs: 50 }, { signal: controller.signal }]) {
    const outcomes = [
      model.predict([], options),
      collect(model.stream([], options)),
      model.batch([[]], options),
      model.chat().sendAll("x", options),
    ].map((outcome) => outcome.catch((error) => error.code));
    await settled();
    if (options.signal) controller.abort();
    await clock.advance(50);
    const code = options.signal ? "cancelled" : "deadline_exceeded";
    assertEquals(await Promise.all(outcomes), [code, code, code, code]);
  }
});

Deno.test("testModel() gives what a handler threw as the cause, and logs it", async () => {
  const cause = new Error("broke");
  await using model = await testModel(defineModel({ predict: () => Promise.reject(cause) }));
  const error = await assertRejects(() => model.predict([]), ModelError, "The function failed");
  assertStrictEquals(error.cause, cause);
  assertStrictEquals(model.logs.find(({ level }) => level === "error")?.fields.cause, cause);
});

Deno.test("testModel().stream() gives tokens and tensors, up to maxTokens", async () => {
  const writer = defineModel({
    output: { dtype: "int8" },
    async *stream() {
      yield "a";
      yield Int8Array.of(1);
      yield { token: "b", final: true };
      yield "never";
    },
  });
  await using model = await testModel(writer);
  assertEquals(await collect(model.stream([])), ["a", tensor("int8", [1]), "b"]);
  assertEquals(await collect(model.stream([], { maxTokens: 1 })), ["a"]);
});

Deno.test("testModel().batch() gives a result or a failure for each input, in order", async () => {
  await using model = await testModel(scale);
  const results = await model.batch([Float32Array.of(1), tensor("float32", [1], [1, 1]), Float32Array.of(3)]);
  assertEquals([results[0], results[2]], [tensor("float32", [2]), tensor("float32", [6])]);
  assertInstanceOf(results[1], ModelError);
  assertEquals(await model.batch([]), []);
});

const parrot = defineModel({
  session: { init: () => ({ heard: 0 }), idleMs: 1000 },
  async *chat(message, ctx) {
    ctx.session.state.heard++;
    if (message.content === "fail") throw new ModelError("aborted", "no");
    yield `${ctx.session.turn}:`;
    yield message.content;
  },
});

Deno.test("testModel().chat() is a conversation that remembers", async () => {
  await using model = await testModel(parrot);
  const chat = model.chat();
  assertEquals([chat.session.turn, chat.session.state], [0, { heard: 0 }]);
  assertEquals(await collect(chat.send("a")), ["0:", "a"]);
  assertEquals(await chat.sendAll("b"), "1:b");
  assertEquals([chat.session.turn, chat.session.state, chat.session.history.length], [2, { heard: 2 }, 4]);
  assertEquals(await model.chat().sendAll("c"), "0:c");
  assertEquals(await model.chat(chat.session.id).sendAll("d"), "2:d");
});

Deno.test("testModel().chat() keeps nothing of a turn that failed", async () => {
  await using model = await testModel(parrot);
  const chat = model.chat("s");
  await assertFails("aborted", "no", () => chat.sendAll("fail"));
  assertEquals([chat.session.turn, chat.session.state], [0, { heard: 0 }]);
});

Deno.test("testModel() ends sessions by idle time, and the rest when it is disposed", async () => {
  using clock = new FakeClock();
  const ends: string[] = [];
  const closing = defineModel({
    session: { init: () => 0, idleMs: 1000 },
    async *chat() {},
    close: (session, reason) => void ends.push(`${session.id} ${reason}`),
  });
  const model = await testModel(closing);
  await model.chat("a").sendAll("x");
  await clock.advance(500);
  await model.chat("b").sendAll("x");
  await clock.advance(500);
  assertEquals(ends, ["a idle"]);
  await model[Symbol.asyncDispose]();
  assertEquals([ends, clock.armed], [["a idle", "b shutdown"], 0]);
});

// A protocol whose bytes are the model's name in and its answer's text out.
const spoken: ProtocolAdapter = (host) => ({
  rpc: [{
    name: "Spoken",
    file: { name: "", bytes: new Uint8Array(0), symbols: [] },
    methods: [{
      name: "Ask",
      clientStreaming: false,
      serverStreaming: false,
      decode: (bytes) => new TextDecoder().decode(bytes),
      encode: (message) => new TextEncoder().encode(message as string),
      async *handle(requests, { id, signal, deadline, metadata, trailers }) {
        for await (const model of requests) {
          const base = { id, signal, deadline, metadata, version: undefined, params: {}, maxTokens: undefined };
          const call = {
            ...base,
            kind: "predict",
            model: `${model}`,
            input: {},
            values: { get: () => undefined },
          } as never;
          for await (const reply of host.invoke(call)) {
            if (reply.type === "tensors") yield `${reply.output["0"]?.data}`;
          }
        }
        trailers.set("asked", "all");
      },
    }],
  }],
});

const hello = defineModel({ output: { dtype: "string" }, predict: () => ["hello"] });
const ask = (...names: readonly string[]) => names.map((name) => new TextEncoder().encode(name));

Deno.test("createTestServer() serves given protocols: bytes in, bytes out, no permission needed", async () => {
  await using server = await createTestServer({ hello }, { adapters: [spoken] });
  const { messages, code, message, trailers } = await server.rpc("/Spoken/Ask", ask("hello", "hello"));
  assertEquals(messages.map((bytes) => new TextDecoder().decode(bytes)), ["hello", "hello"]);
  assertEquals([code, message, trailers.get("asked")], ["ok", "", "all"]);
});

Deno.test("createTestServer() answers what there is not with unimplemented", async () => {
  await using server = await createTestServer({ hello }, { adapters: [spoken] });
  for (const path of ["/Spoken/Tell", "/Heard/Ask", "Spoken", ""]) {
    assertEquals((await server.rpc(path, [])).code, "unimplemented");
  }
});

Deno.test("createTestServer() runs interceptors and bounds messages", async () => {
  const seen: string[] = [];
  const watch: Interceptor = (next) => (call) => (seen.push(call.id), next(call));
  await using server = await createTestServer({ hello }, {
    adapters: [spoken],
    interceptors: [watch],
    limits: { maxMessageBytes: 4 },
  });
  const metadata = { "request-id": "r-1" };
  const { code, message } = await server.rpc("/Spoken/Ask", ask("hello"), { metadata });
  assertEquals([code, seen], ["resource_exhausted", ["r-1"]]);
  assertEquals(message, "Cannot send the answer: it takes 5 bytes, the limit is 4 (option maxMessageBytes)");
});

Deno.test("createTestServer() makes a request id where the caller's cannot be one", async () => {
  const seen: string[] = [];
  const watch: Interceptor = (next) => (call) => (seen.push(call.id), next(call));
  await using server = await createTestServer({ hello }, { adapters: [spoken], interceptors: [watch] });
  for (const id of ["x".repeat(129), "a b", ""]) {
    await server.rpc("/Spoken/Ask", ask("hello"), { metadata: { "request-id": id } });
  }
  assert(seen.length === 3 && seen.every((id) => /^[0-9a-f-]{36}$/.test(id)), `${seen}`);
});

Deno.test("createTestServer().fetch() answers by the adapters' routes", async () => {
  const echo: HttpRoute = {
    method: "POST",
    path: "/echo/:name",
    handle: async (_, { params, readBody }) =>
      new Response(`${params["name"]}: ${new TextDecoder().decode(await readBody())}`),
  };
  await using server = await createTestServer({}, { adapters: [() => ({ http: [echo] })] });
  const post = (path: string) => server.fetch(new Request(`http://test${path}`, { method: "POST", body: "hello" }));
  assertEquals(await (await post("/echo/a%20b")).text(), "a b: hello");
  assertEquals((await post("/other")).status, 404);
});
