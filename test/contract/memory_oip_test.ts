// inference.GRPCInferenceService: ModelInfer, and what there is to know of functions; bytes in and out.
import { defineModel, ModelError, tensor } from "tensorlet";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "tensorlet/assert";
import { createTestServer, type TestServer } from "tensorlet/testing";
import { DTYPES, ELEMENT_BYTES, isFixed } from "../../runtime/core/dtype.ts";
import { datatypeOf } from "../../runtime/protocols/oip_v2/datatype.ts";
import { call } from "../harness/messages.ts";

const echo = defineModel({ predict: (inputs) => inputs });
const affine = defineModel({
  input: { x: { dtype: "float32", shape: [-1, 2] }, bias: { dtype: "float32", shape: [1], optional: true } },
  output: { y: { dtype: "float32", shape: [-1, 2] }, n: { dtype: "int64" } },
  params: { scale: { type: "number", default: 2 }, whole: { type: "integer" }, on: { type: "boolean" } },
  predict: ({ x, bias }, { params: { scale, on } }) => ({
    y: x.data.map((v) => v * scale + (bias?.data[0] ?? 0) + (on ? 100 : 0)),
    n: BigInt64Array.of(BigInt(x.data.length)),
  }),
});

const floats = (...values: readonly number[]) => new Uint8Array(Float32Array.from(values).buffer);
const x = { name: "x", datatype: "FP32", shape: [1, 2] };

async function infer(server: TestServer, request: object, metadata: HeadersInit = {}) {
  const { code, message, replies } = await call(server, "infer", [request], { metadata });
  return code === "ok" ? replies[0] : `${code}: ${message}`;
}

Deno.test("ModelInfer answers in the form that the request used", async () => {
  await using server = await createTestServer({ affine });
  const raw = await infer(server, {
    model_name: "affine",
    model_version: "1",
    id: "seven",
    inputs: [x],
    raw_input_contents: [floats(1, 2)],
  });
  assertEquals([raw.model_name, raw.model_version, raw.id], ["affine", "1", "seven"]);
  assertEquals(
    raw.outputs.map(({ name, datatype, shape, contents }: typeof raw) => [name, datatype, shape, contents]),
    [
      ["y", "FP32", [1, 2], null],
      ["n", "INT64", [1], null],
    ],
  );
  assertEquals(raw.raw_output_contents.map((bytes: Uint8Array) => [...bytes]), [
    [...floats(4 - 2, 4)],
    [2, 0, 0, 0, 0, 0, 0, 0],
  ]);
  const typed = await infer(server, { model_name: "affine", inputs: [{ ...x, contents: { fp32_contents: [1, 2] } }] });
  assertEquals(typed.raw_output_contents, []);
  assertEquals([typed.outputs[0].contents.fp32_contents, typed.outputs[1].contents.int64_contents], [[2, 4], [2]]);
});

Deno.test("ModelInfer carries every datatype in the raw form, bit for bit", async () => {
  await using server = await createTestServer({ echo });
  for (const dtype of DTYPES) {
    const bytes = !isFixed(dtype)
      ? Uint8Array.of(2, 0, 0, 0, 0xc3, 0xa9, 0, 0, 0, 0)
      : Uint8Array.from({ length: 2 * ELEMENT_BYTES[dtype] }, (_, i) => dtype === "bool" ? i : 251 * i + 3);
    const datatype = datatypeOf(dtype);
    const inputs = [{ name: "INPUT__0", datatype, shape: [2] }];
    const { outputs, raw_output_contents } = await infer(server, {
      model_name: "echo",
      inputs,
      raw_input_contents: [bytes],
    });
    assertEquals([outputs[0].name, outputs[0].datatype, outputs[0].shape], ["OUTPUT__0", datatype, [2]]);
    assertEquals([...raw_output_contents[0]], [...bytes], dtype);
  }
});

Deno.test("ModelInfer answers typed contents raw where FP16 or BF16 is among the outputs", async () => {
  const halves = defineModel({
    predict: (inputs) => [...inputs, tensor("float16", [1]), tensor("bfloat16", [0x3f80])],
  });
  await using server = await createTestServer({ halves });
  const inputs = [{ name: "a", datatype: "INT8", shape: [2], contents: { int_contents: [-1, 127] } }];
  const { raw_output_contents } = await infer(server, { model_name: "halves", inputs });
  assertEquals(raw_output_contents.map((bytes: Uint8Array) => [...bytes]), [[255, 127], [0, 60], [128, 63]]);
});

Deno.test("ModelInfer gives BYTES as bytes where the function declares them, else as texts", async () => {
  const sizes = defineModel({
    input: { b: { dtype: "bytes" }, s: { dtype: "string" } },
    output: { kinds: { dtype: "string" } },
    predict: ({ b, s }) => ({ kinds: [...b.data.map((bytes) => `${bytes.length}`), ...s.data] }),
  });
  await using server = await createTestServer({ sizes });
  const inputs = [
    { name: "s", datatype: "BYTES", shape: [1], contents: { bytes_contents: [new TextEncoder().encode("é")] } },
    { name: "b", datatype: "BYTES", shape: [1], contents: { bytes_contents: [Uint8Array.of(255, 0)] } },
  ];
  const { outputs } = await infer(server, { model_name: "sizes", inputs });
  assertEquals(outputs[0].contents.bytes_contents.map((bytes: Uint8Array) => new TextDecoder().decode(bytes)), [
    "2",
    "é",
  ]);
  assertMatch(
    await infer(server, { model_name: "sizes", inputs: [inputs[1], { ...inputs[1], name: "s" }] }),
    /^invalid_argument: Cannot read input "s": element 0 is not valid UTF-8/,
  );
});

Deno.test("ModelInfer takes more typed numbers than other messages may have", async () => {
  await using server = await createTestServer({ echo });
  const int_contents = Array.from({ length: 50_000 }, (_, i) => i % 100);
  const inputs = [{ name: "a", datatype: "UINT8", shape: [50_000], contents: { uint_contents: int_contents } }];
  const { outputs } = await infer(server, { model_name: "echo", inputs });
  assertEquals(outputs[0].contents.uint_contents.length, 50_000);
});

Deno.test("ModelInfer answers the outputs that are asked for, in that order", async () => {
  await using server = await createTestServer({ affine });
  const request = { model_name: "affine", inputs: [x], raw_input_contents: [floats(1, 2)] };
  const names = ({ outputs }: { outputs: { name: string }[] }) => outputs.map(({ name }) => name);
  assertEquals(names(await infer(server, { ...request, outputs: [{ name: "n" }, { name: "y" }] })), ["n", "y"]);
  assertEquals(names(await infer(server, { ...request, outputs: [{ name: "n" }] })), ["n"]);
  assertEquals(
    await infer(server, { ...request, outputs: [{ name: "z" }] }),
    'invalid_argument: unexpected inference output "z" for model "affine", it has "y", "n"',
  );
  const parameters = { classification: { int64_param: 3 } };
  assertMatch(await infer(server, { ...request, outputs: [{ name: "y", parameters }] }), /^invalid_argument: .*"y"/);
});

Deno.test("ModelInfer's parameters are the function's params, in the metadata too", async () => {
  await using server = await createTestServer({ affine });
  const request = { model_name: "affine", inputs: [x], raw_input_contents: [floats(1, 2)] };
  const y = async (parameters: object, metadata: HeadersInit = {}) => {
    const answer = await infer(server, { ...request, parameters }, metadata);
    return typeof answer === "string"
      ? answer
      : new Float32Array(new Uint8Array(answer.raw_output_contents[0]).buffer)[0];
  };
  assertEquals(await y({ scale: { double_param: 0.5 } }), 0.5);
  assertEquals(await y({ scale: { int64_param: 3 } }), 3);
  assertEquals(await y({ scale: { uint64_param: 4 } }), 4);
  assertEquals(await y({ scale: { string_param: "5" }, on: { bool_param: true } }), 105);
  assertEquals(await y({}, { "param-scale": "6" }), 6);
  assertEquals(await y({ timeout: { int64_param: 1 }, priority: { int64_param: 1 } }), 2);
  assertEquals(
    await y({ sequence_id: { int64_param: 1 }, triton_enable_empty_final_response: { bool_param: true } }),
    2,
  );
  assertMatch(await y({ whole: { uint64_param: "18446744073709551615" } }) as string, /got "18446744073709551615"/);
  assertMatch(await y({ nothing: { bool_param: true } }) as string, /^invalid_argument: Cannot accept param "nothing"/);
  assertMatch(await y({ scale: {} }) as string, /^invalid_argument: .*parameter "scale": no value/);
});

Deno.test("ModelInfer refuses what it cannot take, saying what it got and wanted", async () => {
  await using server = await createTestServer({ affine, echo });
  const ask = (request: object) => infer(server, { model_name: "affine", ...request });
  const refusals: readonly (readonly [object, string])[] = [
    [{ inputs: [{ ...x, datatype: "FP64" }] }, 'Cannot accept input "x": got datatype "FP64", wanted "FP32"'],
    [{ inputs: [{ ...x, datatype: "fp32" }] }, 'Cannot read input "x": datatype "fp32" is none of BOOL, INT8'],
    [{ inputs: [{ ...x, shape: [1, -2] }] }, 'Cannot read input "x": shape is [1,-2]'],
    [
      { inputs: [{ ...x, shape: [2 ** 40, 2 ** 40] }] },
      'Cannot read input "x": shape is [1099511627776,1099511627776]',
    ],
    [{ inputs: [x], raw_input_contents: [floats(1)] }, 'got 4 bytes, its shape and datatype "FP32" take 8'],
    [{ inputs: [x], raw_input_contents: [floats(1, 2), floats(1)] }, "got 2 raw_input_contents for 1 inputs"],
    [
      { inputs: [{ ...x, contents: { fp32_contents: [1, 2] } }], raw_input_contents: [floats(1, 2)] },
      "contents must not be specified when using raw_input_contents",
    ],
    [{ inputs: [{ ...x, contents: { fp32_contents: [1] } }] }, "got 1 elements, its shape takes 2"],
    [{ inputs: [{ ...x, contents: { fp64_contents: [1, 2] } }] }, "its elements are in fp64_contents"],
    [{ inputs: [] }, 'input "x" is missing'],
    [{ inputs: [x, x], raw_input_contents: [floats(1, 2), floats(1, 2)] }, "it came twice"],
    [{ inputs: [{ ...x, name: "z" }], raw_input_contents: [floats(1, 2)] }, 'Cannot accept input "z"'],
    [{ inputs: [{ ...x, shape: [2, 1] }], raw_input_contents: [floats(1, 2)] }, "got shape [2,1], wanted [-1,2]"],
    [
      { inputs: [{ ...x, parameters: { shared_memory_region: { string_param: "r" } } }] },
      'shared memory (parameter "shared_memory_region") is not supported',
    ],
  ];
  for (const [request, wanted] of refusals) assertStringIncludes(await ask(request), wanted);
  const bytes = { name: "s", datatype: "BYTES", shape: [2] };
  const texts = (...raw: number[]) =>
    infer(server, { model_name: "echo", inputs: [bytes], raw_input_contents: [Uint8Array.from(raw)] });
  assertStringIncludes(await texts(1, 0, 0), "incomplete string length indicator");
  assertStringIncludes(await texts(5, 0, 0, 0, 1), "element 0 is 5 bytes long, 1 are left");
  assertStringIncludes(await texts(0, 0, 0, 0), "got 1 elements, its shape takes 2");
  const int8 = { name: "i", datatype: "INT8", shape: [1], contents: { int_contents: [128] } };
  assertStringIncludes(
    await infer(server, { model_name: "echo", inputs: [int8] }),
    'element 0 is 128, which "INT8" cannot hold',
  );
  assertMatch(await infer(server, { model_name: "afine" }), /^not_found: .*"afine".*"affine"/);
  assertMatch(await infer(server, { model_name: "affine", model_version: "9" }), /^not_found: .*no version "9"/);
});

Deno.test("ModelInfer names tensors without names by their position", async () => {
  const minus = defineModel({
    predict: ([a, b]) => tensor("int8", [Number(a!.data[0]) - Number(b!.data[0])]),
  });
  await using server = await createTestServer({ minus });
  const input = (name: string) => ({ name, datatype: "INT8", shape: [1] });
  const ask = (...names: readonly string[]) =>
    infer(server, {
      model_name: "minus",
      inputs: names.map(input),
      raw_input_contents: names.map((_, i) => Uint8Array.of(5 + i)),
    });
  assertEquals([...(await ask("a", "b")).raw_output_contents[0]], [255]);
  assertEquals([...(await ask("INPUT__1", "INPUT__0")).raw_output_contents[0]], [1]);
  assertStringIncludes(await ask("INPUT__1", "INPUT__2"), "wanted INPUT__0 and so on");
});

const talk = defineModel({
  session: { init: () => ({ turns: 0 }) },
  async *chat({ content }, { session }) {
    if (content === "fail") throw new ModelError("aborted", "failed");
    session.state.turns++;
    yield `${session.state.turns}: `;
    yield content;
  },
});

const say = async (server: TestServer, content: string, parameters: Record<string, object>) => {
  const data = new TextEncoder().encode(content);
  const inputs = [{ name: "text_input", datatype: "BYTES", shape: [1], contents: { bytes_contents: [data] } }];
  const answer = await infer(server, { model_name: "talk", inputs, parameters });
  if (typeof answer === "string") return answer;
  const [{ name, contents }] = answer.outputs;
  assertEquals(name, "text_output");
  return new TextDecoder().decode(contents.bytes_contents[0]);
};

Deno.test("ModelInfer's sequences are sessions: START begins one, END ends it", async () => {
  await using server = await createTestServer({ talk });
  const id = { sequence_id: { uint64_param: "18446744073709551615" } };
  const start = { sequence_start: { bool_param: true } };
  const end = { sequence_end: { bool_param: true } };
  const missing = "must specify the START flag on the first request of the sequence";
  assertStringIncludes(await say(server, "a", id), missing);
  assertEquals(await say(server, "a", { ...id, ...start }), "1: a");
  assertEquals(await say(server, "b", id), "2: b");
  assertEquals(await say(server, "c", { ...id, ...start }), "1: c", "START on a live one begins a new one");
  assertEquals(await say(server, "d", { ...id, ...end }), "2: d");
  assertStringIncludes(await say(server, "e", id), missing);
  assertEquals(await say(server, "f", { sequence_id: { string_param: "s" }, ...start, ...end }), "1: f");
  assertStringIncludes(await say(server, "g", { sequence_id: { string_param: "s" } }), missing);
  for (const none of [{}, { sequence_id: { int64_param: 0 } }, { sequence_id: { string_param: "" } }]) {
    assertStringIncludes(await say(server, "h", none), "must specify a non-zero or non-empty correlation ID");
  }
  assertStringIncludes(await say(server, "i", { ...id, sequence_start: { int64_param: 1 } }), "wanted true or false");
});

Deno.test("the function's close is told that the client has ended its sequence", async () => {
  const reasons: string[] = [];
  const closed = Promise.withResolvers<void>();
  const model = defineModel({
    ...talk["~model"],
    close: (session, reason) => (reasons.push(`${session.turn} ${reason}`), closed.resolve()),
  });
  await using server = await createTestServer({ talk: model });
  const flags = { sequence_start: { bool_param: true }, sequence_end: { bool_param: true } };
  await say(server, "a", { sequence_id: { int64_param: 5 }, ...flags });
  await closed.promise;
  assertEquals(reasons, ["1 ended"]);
});

Deno.test("ModelInfer does not answer for a function that streams", async () => {
  const tokens = defineModel({ input: {}, stream: () => Promise.resolve() });
  await using server = await createTestServer({ tokens });
  assertMatch(await infer(server, { model_name: "tokens" }), /^unimplemented: .*decoupled.*ModelStreamInfer/);
});

Deno.test("metadata and configuration say what a function takes", async () => {
  const tokens = defineModel({
    input: {},
    params: { prompt: { type: "string", default: "" } },
    async *stream() {},
  });
  await using server = await createTestServer({ affine, echo, tokens, talk });
  const metadata = async (name: string) => (await call(server, "modelMetadata", [{ name }])).replies[0];
  const config = async (name: string) => (await call(server, "modelConfig", [{ name }])).replies[0].config;
  assertEquals(await metadata("affine"), {
    name: "affine",
    versions: ["1"],
    platform: "deno",
    inputs: [{ name: "x", datatype: "FP32", shape: [-1, 2] }, { name: "bias", datatype: "FP32", shape: [1] }],
    outputs: [{ name: "y", datatype: "FP32", shape: [-1, 2] }, { name: "n", datatype: "INT64", shape: [-1] }],
  });
  const text = { name: "text_input", datatype: "BYTES", shape: [1] };
  for (const name of ["tokens", "talk"]) assertEquals((await metadata(name)).inputs, [text]);
  assertEquals((await metadata("echo")).inputs, []);
  const { input, output, max_batch_size, backend, model_transaction_policy } = await config("affine");
  assertEquals([input[1].name, input[1].data_type, input[1].dims, input[1].optional], ["bias", 11, [1], true]);
  assertEquals([output[1].data_type, max_batch_size, backend], [9, 0, "tensorlet"]);
  assertEquals(model_transaction_policy.decoupled, false);
  assertEquals((await config("tokens")).model_transaction_policy.decoupled, true);
  assert((await config("talk")).sequence_batching.direct);
  const { code } = await call(server, "modelMetadata", [{ name: "nothing" }]);
  assertEquals(code, "not_found");
});

Deno.test("a function that is stacked has a batch size, and dims without it", async () => {
  const tensors = { dtype: "float32", shape: [-1, 3] } as const;
  const stacked = defineModel({ input: tensors, output: tensors, batching: { maxSize: 8 }, predict: (x) => x });
  await using server = await createTestServer({ stacked });
  const { config } = (await call(server, "modelConfig", [{ name: "stacked" }])).replies[0];
  assertEquals([config.max_batch_size, config.input[0].name, config.input[0].dims], [8, "INPUT__0", [3]]);
  assertEquals(config.dynamic_batching.max_queue_delay_microseconds, 5000);
});

Deno.test("the server and its functions are live and ready", async () => {
  const broken = defineModel({ load: () => Promise.reject(new Error("no weights")), predict: () => [] });
  await using server = await createTestServer({ echo });
  await using sick = await createTestServer({ echo, broken });
  const ready = async (target: TestServer, request: object) =>
    (await call(target, "modelReady", [request])).replies[0]?.ready;
  assertEquals((await call(server, "serverLive", [{}])).replies, [{ live: true }]);
  assertEquals((await call(server, "serverReady", [{}])).replies, [{ ready: true }]);
  assertEquals((await call(sick, "serverReady", [{}])).replies, [{ ready: false }]);
  assertEquals([await ready(sick, { name: "broken" }), await ready(sick, { name: "broken", version: "1" })], [
    false,
    false,
  ]);
  assertEquals([await ready(sick, { name: "echo" }), await ready(sick, { name: "echo", version: "1" })], [true, true]);
  assertEquals((await call(server, "modelReady", [{ name: "nothing" }])).code, "not_found");
  const { name, extensions } = (await call(server, "serverMetadata", [{}])).replies[0];
  assertEquals([name, extensions.includes("sequence")], ["tensorlet", true]);
});

Deno.test("a function that is unloaded is out of service until it is loaded", async () => {
  let loads = 0;
  let unloads = 0;
  const counted = defineModel({ load: () => ++loads, unload: () => void unloads++, predict: () => [] });
  await using server = await createTestServer({ counted, echo });
  const index = async (ready = false) =>
    (await call(server, "repositoryIndex", [{ ready }])).replies[0].models.map((
      { name, state, reason }: Record<string, string>,
    ) => `${name} ${state} ${reason}`.trim());
  assertEquals(await index(), ["counted READY", "echo READY"]);
  assertEquals((await call(server, "repositoryUnload", [{ model_name: "counted" }])).code, "ok");
  assertEquals(
    await infer(server, { model_name: "counted" }),
    [
      'unavailable: Function "counted" is unloaded: it is to be loaded first',
    ][0],
  );
  assertEquals(await index(), ["counted UNAVAILABLE unloaded", "echo READY"]);
  assertEquals(await index(true), ["echo READY"]);
  assertEquals((await call(server, "modelReady", [{ name: "counted" }])).replies[0].ready, false);
  assertEquals((await call(server, "repositoryLoad", [{ model_name: "counted" }])).code, "ok");
  assertEquals((await infer(server, { model_name: "counted" })).outputs, []);
  assertEquals([loads, unloads], [2, 1]);
  assertEquals((await call(server, "repositoryLoad", [{ model_name: "nothing" }])).code, "not_found");
  const parameters = { config: { string_param: "{}" } };
  assertEquals((await call(server, "repositoryLoad", [{ model_name: "echo", parameters }])).code, "invalid_argument");
});

Deno.test("statistics count what functions have answered", async () => {
  const fragile = defineModel({
    predict: () => {
      throw new ModelError("aborted", "no");
    },
  });
  await using server = await createTestServer({ echo, fragile });
  for (let i = 0; i < 3; i++) await infer(server, { model_name: "echo" });
  await infer(server, { model_name: "fragile" });
  const stats = async (request: object) => (await call(server, "modelStatistics", [request])).replies[0]?.model_stats;
  const [first] = await stats({ name: "echo" });
  assertEquals([first.name, first.version, first.inference_count, first.execution_count], ["echo", "1", 3, 3]);
  const { success, fail, compute_infer } = first.inference_stats;
  assertEquals([success.count, fail.count, compute_infer.count], [3, 0, 3]);
  assert(success.ns >= compute_infer.ns && compute_infer.ns > 0 && first.last_inference > 0);
  const all = await stats({});
  assertEquals(all.map(({ name, inference_stats }: typeof first) => [name, inference_stats.fail.count]), [
    ["echo", 0],
    ["fragile", 1],
  ]);
  assertEquals(await stats({ name: "nothing" }), undefined);
});
