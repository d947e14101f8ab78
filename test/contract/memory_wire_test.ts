// Garbage, unknown methods, and how functions are named: what all methods share.
import { defineModel } from "tensorlet";
import { assert, assertEquals } from "tensorlet/assert";
import { createTestServer, type TestServer } from "tensorlet/testing";
import { bytesOf } from "../../runtime/core/tensor.ts";
import { call, encode, type Method } from "../harness/messages.ts";

const first = defineModel({ output: { dtype: "float32" }, predict: () => Float32Array.of(1) });
const second = defineModel({ version: "2", output: { dtype: "float32" }, predict: () => Float32Array.of(2) });
const bot = defineModel({
  async *chat() {
    yield "hi";
  },
});

const REQUESTS: Record<string, [Method, object]> = {
  tensors: ["tensors", {
    model_name: "first",
    inputs: [{ dtype: "float32", shape: [2], data: bytesOf(Float32Array.of(1, 2)) }],
  }],
  predict: ["predict", { model_id: "first", input_tensor: [1, 2], params: { a: "b" }, max_tokens: 300 }],
  batch: ["batch", { id: "a", features: [1, 2] }],
  chat: ["chat", { session_id: "s", content: "hé" }],
};

async function send(server: TestServer, path: string, bytes: Uint8Array) {
  return await server.rpc(path, [bytes], { metadata: { "model-id": path.endsWith("ChatStream") ? "bot" : "first" } });
}

Deno.test("every method refuses a request cut short anywhere within a field", async () => {
  await using server = await createTestServer({ first, bot });
  for (const [method, request] of Object.values(REQUESTS)) {
    const { path, bytes } = encode(method, request);
    assertEquals((await send(server, path, bytes)).code, "ok");
    let refused = 0;
    for (let length = 1; length < bytes.length; length++) {
      const { code, message } = await send(server, path, bytes.subarray(0, length));
      if (code === "ok") continue;
      assert(code === "invalid_argument", `${path} ${length}: ${code} ${message}`);
      if (message.startsWith("Cannot decode the request as inference.")) refused++;
    }
    // All but the ends of its top-level fields.
    assert(refused >= bytes.length - 1 - Object.keys(request).length, `${path}: ${refused} of ${bytes.length}`);
  }
});

Deno.test("every method refuses garbage, saying what is wrong with it", async () => {
  await using server = await createTestServer({ first, bot });
  for (const [method, request] of Object.values(REQUESTS)) {
    const { path, bytes } = encode(method, request);
    const { code, message } = await send(server, path, Uint8Array.of(...bytes, 255, 255));
    assertEquals([code, message.includes("cut short")], ["invalid_argument", true]);
    const { message: why } = await send(server, path, Uint8Array.of(10, 1, 255));
    assert(method === "tensors" || method === "predict" || why.includes("is not valid UTF-8"), why);
  }
});

Deno.test("every method skips unknown fields, and the last value wins", async () => {
  await using server = await createTestServer({ first, bot });
  const { path, bytes } = encode("predict", { model_id: "nobody" });
  const name = encode("predict", { model_id: "first" }).bytes;
  const { code } = await send(server, path, Uint8Array.of(...bytes, 250, 1, 2, 7, 7, ...name));
  assertEquals(code, "ok");
});

Deno.test("packed, unpacked and split tensors are the same", async () => {
  const sum = defineModel({
    input: { dtype: "float32" },
    output: { dtype: "float32" },
    predict: ({ data }) => Float32Array.of(data.length, data.reduce((a, b) => a + b)),
  });
  await using server = await createTestServer({ sum });
  const float = (value: number) => bytesOf(Float32Array.of(value));
  const encodings = [
    [18, 12, ...float(1), ...float(2), ...float(3)],
    [21, ...float(1), 21, ...float(2), 21, ...float(3)],
    [18, 4, ...float(1), 21, ...float(2), 18, 4, ...float(3)],
  ];
  const { path } = encode("predict", {});
  const answers = await Promise.all(encodings.map(async (bytes) => {
    const { messages } = await server.rpc(path, [Uint8Array.from(bytes)]);
    return [...new Float32Array(messages[0]!.slice(2, 10).buffer)];
  }));
  assertEquals(answers, [[3, 6], [3, 6], [3, 6]]);
});

Deno.test("a method that there is not, and a call without a request", async () => {
  await using server = await createTestServer({ first });
  assertEquals((await server.rpc("/inference.v1.ModelInference/Nope", [])).code, "unimplemented");
  const { code, message } = await call(server, "predict", []);
  assertEquals([code, message], ["invalid_argument", "Cannot read the request: the client sent none"]);
});

const named = async (server: TestServer, model_id: string) => {
  const { code, message, replies } = await call(server, "predict", [{ model_id }]);
  return code === "ok" ? replies[0] : `${code}: ${message}`;
};

Deno.test("a function is named by name, by version, or not at all where it is the only one", async () => {
  await using both = await createTestServer({ first, second, bot });
  assertEquals((await named(both, "second")).model_version, "2");
  assertEquals((await named(both, "second@2")).output_tensor, [2]);
  assertEquals(
    await named(both, ""),
    'invalid_argument: Cannot choose a model: model_id is empty, wanted one of "first", "second"',
  );
  await using one = await createTestServer({ first, bot });
  assertEquals((await named(one, "")).output_tensor, [1]);
  assertEquals((await call(one, "chat", [{ content: "x" }])).code, "ok");
});

Deno.test("an unknown name is told from an unknown version, cut, and compared with the known ones", async () => {
  await using server = await createTestServer({ first, second });
  const unknown = await named(server, "frist");
  assert(/^not_found: There is no model "frist"; the nearest name.* "first"$/.test(unknown), unknown);
  assertEquals(await named(server, "second@1"), 'not_found: Model "second" has no version "1", only "2"');
  assertEquals(await named(server, "x".repeat(5000)), `not_found: There is no model "${"x".repeat(100)}…"`);
});

Deno.test("a function without a handler for a method is unimplemented there", async () => {
  await using server = await createTestServer({ first, bot });
  assertEquals(
    await named(server, "bot"),
    'unimplemented: Function "bot" has no predict handler, nor one that can stand in for it',
  );
  for (const method of ["batch", "chat"] as const) {
    const model = method === "chat" ? "first" : "bot";
    const { code, message } = await call(server, method, [], { metadata: { "model-id": model } });
    assertEquals([code, message.includes(`"${model}" has no ${method} handler`)], ["unimplemented", true]);
  }
});

Deno.test("metadata names the function where the message has no field for it", async () => {
  await using server = await createTestServer({ first, second });
  const answer = await call(server, "batch", [{ id: "a" }], { metadata: { "model-id": "second@2" } });
  assertEquals(answer.replies[0].results[0].output_tensor, [2]);
  const { code, message } = await call(server, "batch", []);
  assertEquals([code, message.includes('model (metadata "model-id") is empty')], ["invalid_argument", true]);
});
