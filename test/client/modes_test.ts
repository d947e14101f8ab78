// The four modes against a real server.
import { ClientError, createClient, declareModel } from "tensorlet/client";
import { defineModel, mapNumeric, tensor } from "tensorlet";
import { assertEquals, assertRejects, assertStringIncludes } from "tensorlet/assert";
import { serveModels } from "../harness/grpc_client.ts";

const affine = defineModel({
  input: { dtype: "any" },
  predict: (x) => mapNumeric(x, (v) => v * 2 + 10, (v) => v * 2n + 10n),
});
const scale = defineModel({
  input: { dtype: "float32", shape: [-1, 3] },
  output: { dtype: "float32", shape: [-1, 3] },
  params: { factor: { type: "number", default: 2 } },
  predict: (x, ctx) => x.data.map((v) => v * ctx.params.factor),
});
const blend = defineModel({
  input: { image: { dtype: "float32" }, mask: { dtype: "uint8" }, gain: { dtype: "float64", optional: true } },
  output: { mean: { dtype: "float64", shape: [] }, label: { dtype: "string", shape: [1] } },
  predict: ({ image, mask, gain }) => ({
    mean: Float64Array.of(image.data.reduce((sum, v, i) => sum + v * mask.data[i]!, 0) * (gain?.data[0] ?? 1)),
    label: [`${mask.dtype}`],
  }),
});
const words = defineModel({
  params: { word: { type: "string", default: "word" } },
  async *stream(_inputs, ctx) {
    for (let i = 0; i < (ctx.maxTokens ?? 5); i++) yield `${ctx.params.word}${i}`;
  },
});
const parrot = defineModel({
  async *chat(message, ctx) {
    yield `${ctx.session.turn + 1}: `;
    yield message.content;
  },
});
const MODELS = { affine, scale, blend, words, parrot };

Deno.test("client: predict keeps every dtype", async () => {
  await using served = await serveModels(MODELS);
  await using client = createClient(served.address, { model: "affine" });
  const { output } = await client.predict(tensor("int64", [2n ** 60n + 1n]));
  assertEquals(output, tensor("int64", [2n ** 61n + 12n]));
  const half = await client.predict([tensor("float16", [0.5, 1], [2, 1])]);
  assertEquals(half.outputs, [tensor("float16", [11, 12], [2, 1])]);
  assertEquals(half.latencyMs >= 0, true);
});

Deno.test("client: predict by a definition names tensors and completes arrays", async () => {
  await using served = await serveModels(MODELS);
  await using client = createClient(served.address, { model: "blend", definition: blend });
  const { output } = await client.predict({ mask: Uint8Array.of(1, 0, 1), image: Float32Array.of(1, 2, 3) });
  assertEquals([output.mean.data[0], output.label.data], [4, ["uint8"]]);
  await using scaled = createClient(served.address, { model: "scale@1", definition: scale });
  const { output: rows } = await scaled.predict(Float32Array.of(1, 2, 3, 4, 5, 6), { params: { factor: 3 } });
  assertEquals(rows, tensor("float32", [3, 6, 9, 12, 15, 18], [2, 3]));
});

Deno.test("client: predict by types alone takes and gives the one tensor", async () => {
  await using served = await serveModels(MODELS);
  await using client = createClient<typeof scale>(served.address, { model: "scale" });
  const { output } = await client.predict(tensor("float32", [1, 2, 3], [1, 3]));
  assertEquals(output, tensor("float32", [2, 4, 6], [1, 3]));
  const error = await assertRejects(() => client.predict(Float32Array.of(1, 2, 3)), ClientError);
  assertStringIncludes(error.message, "got shape [3], wanted [-1,3]"); // nobody has told the client the shape
});

Deno.test("client: what is no tensor of the function is said by name", async () => {
  await using client = createClient("127.0.0.1:1", { model: "blend", definition: blend });
  const failure = async (input: unknown) =>
    (await assertRejects(() => client.predict(input as never), ClientError)).message;
  const image = Float32Array.of(1);
  const mask = Uint8Array.of(1);
  assertEquals(
    await failure({ image, masks: mask }),
    'Cannot send input "masks": the function has "image", "mask", "gain"',
  );
  assertEquals(
    await failure({ image, gain: Float64Array.of(1) }),
    'Cannot send the inputs: "mask" is missing, wanted "image", "mask", "gain"',
  );
  assertEquals(
    await failure({ image: mask, mask }),
    'Cannot send input "image": wanted a tensor or data of dtype float32',
  );
  const torn = { dtype: "float32", shape: [2], data: image };
  assertEquals(await failure({ image: torn, mask }), 'Cannot send input "image": 1 elements do not fill shape [2]');
});

Deno.test("client: any tensor that may be left out is, and a declaration does for a definition", async () => {
  const specs = {
    input: { mask: { dtype: "bool", optional: true }, x: { dtype: "int8" }, gain: { dtype: "int8", optional: true } },
    output: { x: { dtype: "int8" }, given: { dtype: "string" } },
  } as const;
  const pick = defineModel({ ...specs, predict: ({ x, ...others }) => ({ x: x.data, given: Object.keys(others) }) });
  await using served = await serveModels({ pick });
  await using client = createClient(served.address, { model: "pick", definition: declareModel(specs) });
  const x = Int8Array.of(7);
  for (const others of [{}, { mask: Uint8Array.of(1) }, { gain: x }, { gain: x, mask: Uint8Array.of(1) }]) {
    const { output } = await client.predict({ ...others, x });
    assertEquals(output.x, tensor("int8", [7]));
    assertEquals(output.given.data.toSorted(), Object.keys(others).toSorted());
  }
});

Deno.test("client: stream gives tokens", async () => {
  await using served = await serveModels(MODELS);
  await using client = createClient(served.address, { model: "words" });
  const stream = client.stream([], { maxTokens: 3, params: { word: "é" } });
  assertEquals(await Array.fromAsync(stream), ["é0", "é1", "é2"]);
  assertEquals([stream.stats.tokens, stream.stats.resumptions], [3, 0]);
  assertEquals(stream.stats.latencyMs! >= stream.stats.timeToFirstTokenMs!, true);
});

Deno.test("client: batch answers every vector in order", async () => {
  await using served = await serveModels(MODELS);
  await using client = createClient<typeof scale>(served.address, { model: "scale" });
  const { results, version, stats } = await client.batch(
    [[1, 2, 3], Float32Array.of(4, 5, 6), { id: "c", features: [7, 8, 9] }],
    { params: { factor: 10 } },
  );
  assertEquals(results.map(({ id, output }) => [id, [...output]]), [
    [undefined, [10, 20, 30]],
    [undefined, [40, 50, 60]],
    ["c", [70, 80, 90]],
  ]);
  assertEquals([version, stats.sent], ["1", 3]);
});

Deno.test("client: chat keeps its session", async () => {
  await using served = await serveModels(MODELS);
  await using client = createClient(served.address, { model: "parrot" });
  {
    await using chat = client.chat({ sessionId: "s" });
    assertEquals(await Array.fromAsync(chat.send("hello")), ["1: ", "hello"]);
    assertEquals((await Array.fromAsync(chat.send("again"))).join(""), "2: again");
  }
  await using chat = client.chat({ sessionId: "s" });
  assertEquals((await Array.fromAsync(chat.send("back"))).join(""), "3: back");
});
