// inference.InferenceService/Predict, bytes in and out.
import { defineModel, mapNumeric, ModelError, tensor } from "tensorlet";
import { assert, assertEquals } from "tensorlet/assert";
import { createTestServer } from "tensorlet/testing";
import { bytesOf } from "../../runtime/core/tensor.ts";
import { call } from "../harness/messages.ts";

const echo = defineModel({ predict: (inputs) => inputs });
const affine = defineModel({ predict: ([x]) => mapNumeric(x, (v) => v * 2 + 10, (v) => v * 2n + 10n) });
const pair = defineModel({
  input: { image: { dtype: "float32", shape: [-1, 2] }, mask: { dtype: "bool", optional: true } },
  output: { n: { dtype: "int32" }, names: { dtype: "string" } },
  params: { suffix: { type: "string", default: "!" } },
  predict: ({ image }, ctx) => ({ n: Int32Array.of(image.shape[0]), names: [`n${ctx.params.suffix}`] }),
});

const floats = (shape: readonly number[], ...values: readonly number[]) => ({
  dtype: "float32",
  shape,
  data: bytesOf(Float32Array.from(values)),
});

Deno.test("Predict answers OK with tensors, whole milliseconds and NumPy dtypes", async () => {
  await using server = await createTestServer({ pair });
  const { code, replies } = await call(server, "tensors", [{
    model_name: "pair",
    inputs: [floats([2, 2], 1, 2, 3, 4)],
  }], { metadata: { "param-suffix": "?" } });
  assertEquals(code, "ok");
  const { status, outputs, latency_ms } = replies[0];
  assertEquals([status, Number.isInteger(latency_ms)], ["OK", true]);
  assertEquals(outputs.map(({ dtype, shape }: { dtype: string; shape: number[] }) => [dtype, shape]), [
    ["int32", [1]],
    ["<U2", [1]],
  ]);
});

Deno.test("Predict gives every payload back unchanged", async () => {
  await using server = await createTestServer({ echo });
  const sent = [
    { dtype: "float32", shape: [3], data: Uint8Array.of(1, 0, 192, 127, 0, 0, 0, 128, 1, 0, 0, 0) }, // NaN, -0, subnormal
    { dtype: "int64", shape: [], data: bytesOf(BigInt64Array.of(-(2n ** 63n))) },
    { dtype: "uint64", shape: [1], data: bytesOf(BigUint64Array.of(2n ** 64n - 1n)) },
    { dtype: "bool", shape: [2], data: Uint8Array.of(0, 1) },
    { dtype: "bfloat16", shape: [1], data: Uint8Array.of(193, 127) },
    { dtype: "float64", shape: [0, 4], data: new Uint8Array(0) },
    { dtype: "<U2", shape: [1], data: bytesOf(Uint32Array.of(0x1f600, 97)) },
    { dtype: "|S3", shape: [2], data: new TextEncoder().encode("a\0bxyz") },
  ];
  const { replies } = await call(server, "tensors", [{ model_name: "echo", inputs: sent }]);
  const plain = (tensors: typeof sent) => tensors.map(({ dtype, shape, data }) => [dtype, [...shape], [...data]]);
  assertEquals(plain(replies[0].outputs), plain(sent));
});

Deno.test("Predict carries payloads of any size and offset", async () => {
  await using server = await createTestServer({ affine });
  for (const name of ["affine", "", "affine@1"]) {
    for (const count of [1, 2047, 2048, 20_000]) {
      const values = Array.from({ length: count }, (_, i) => i % 1000);
      const { code, replies } = await call(server, "tensors", [{
        model_name: name,
        inputs: [floats([count], ...values)],
      }]);
      assertEquals(code, "ok");
      const { data } = replies[0].outputs[0];
      assertEquals(new Float32Array(Uint8Array.from(data).buffer), Float32Array.from(values, (v) => v * 2 + 10));
    }
  }
});

Deno.test("Predict refuses bad requests, naming input, expected and got", async () => {
  await using server = await createTestServer({ pair });
  const refusals: [unknown[], string][] = [
    [[], 'got 0 input tensors, wanted 1 to 2 ("image", "mask")'],
    [[{ ...floats([1, 2], 1, 2), dtype: "object" }], 'Cannot read input "image": dtype "object" is not supported'],
    [[floats([2, 2], 1, 2)], 'input "image": shape [2,2] of "float32" takes 16 bytes, got 8'],
    [[floats([-1, 2], 1, 2)], 'input "image": shape is [-1,2]'],
    [[floats([2], 1, 2)], 'input "image": got shape [2], wanted [-1,2]'],
    [[{ ...floats([1, 1], 1, 2), dtype: "<f8" }], 'input "image": got dtype "<f8", wanted "float32"'],
    [
      [floats([1, 2], 1, 2), { dtype: "bool", shape: [1], data: Uint8Array.of(7) }],
      'input "mask": bool element 0 is 7, wanted 0 or 1',
    ],
  ];
  for (const [inputs, text] of refusals) {
    const { code, message, replies } = await call(server, "tensors", [{ model_name: "pair", inputs }]);
    assertEquals([code, replies.length], ["invalid_argument", 0]);
    assert(message.includes(text), message);
  }
});

Deno.test("Predict takes tensors by the names in the metadata, and says those of its answer", async () => {
  await using server = await createTestServer({ pair, affine });
  const mask = { dtype: "bool", shape: [1], data: Uint8Array.of(1) };
  const send = (model_name: string, names: string, ...inputs: readonly object[]) =>
    call(server, "tensors", [{ model_name, inputs }], { metadata: { "input-names": names } });
  const { code, trailers } = await send("pair", "mask, image", mask, floats([1, 2], 1, 2));
  assertEquals([code, trailers.get("output-names")], ["ok", "n,names"]);
  const single = await send("affine", "x", floats([1], 1));
  assertEquals([single.code, single.trailers.has("output-names")], ["ok", false]);
  for (
    const [names, text] of [
      ["mask", 'input "image" is missing'],
      ["img", 'Cannot accept input "img": the function has only "image", "mask"'],
      ["image", 'Cannot accept input "image": got dtype "bool", wanted "float32"'],
      ["image,mask", "got 1 input tensors and 2 names"],
    ] as const
  ) {
    const { code, message } = await send("pair", names, mask);
    assertEquals(code, "invalid_argument");
    assert(message.includes(text), message);
  }
});

Deno.test("Predict names the dtype as it was sent when the function refuses it", async () => {
  await using server = await createTestServer({ affine });
  const text = { dtype: "<U1", shape: [1], data: new Uint8Array(4) };
  const { code, message } = await call(server, "tensors", [{ model_name: "affine", inputs: [text] }]);
  assertEquals(code, "invalid_argument");
  assert(message.includes('dtype "<U1": a numeric dtype is wanted'), message);
});

Deno.test("Predict hides what a function throws, and hands a ModelError on", async () => {
  const boom = defineModel({ predict: () => Promise.reject(new Error("password")) });
  const strict = defineModel({ predict: () => Promise.reject(new ModelError("out_of_range", "too far")) });
  const liar = defineModel({ output: { dtype: "int8" }, predict: () => tensor("float32", [1]) as never });
  await using server = await createTestServer({ boom, strict, liar });
  const answer = async (model_name: string) => {
    const { code, message } = await call(server, "tensors", [{ model_name }], { metadata: { "request-id": "r-1" } });
    return [code, message];
  };
  assertEquals(await answer("boom"), [
    "internal",
    "The function failed (request id r-1); the server's log has the cause",
  ]);
  assertEquals(await answer("strict"), ["out_of_range", "too far"]);
  assertEquals((await answer("liar"))[0], "internal");
});

Deno.test("Predict is bounded by the client's deadline and the server's maximum", async () => {
  const stuck = defineModel({ predict: () => new Promise<never>(() => {}) });
  await using server = await createTestServer({ stuck }, { limits: { unaryTimeoutMs: 0 } });
  assertEquals((await call(server, "tensors", [{}])).code, "deadline_exceeded");
  assertEquals((await call(server, "tensors", [{}], { timeoutMs: -1 })).code, "deadline_exceeded");
  const cancelled = call(server, "tensors", [{}], { signal: AbortSignal.abort(), timeoutMs: 60_000 });
  assertEquals((await cancelled).code, "cancelled");
});

Deno.test("Predict bounds its answer", async () => {
  await using server = await createTestServer({ echo }, { limits: { maxMessageBytes: 100 } });
  const { code, message } = await call(server, "tensors", [{ inputs: [floats([25], ...Array(25).fill(1))] }]);
  assertEquals(code, "resource_exhausted");
  assert(/it takes \d+ bytes, the limit is 100 \(option maxMessageBytes\)/.test(message), message);
});
