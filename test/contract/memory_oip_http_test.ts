// The Open Inference Protocol over HTTP, without a socket.
import { defineModel, ModelError, tensor } from "tensorlet";
import { assertEquals, assertMatch, assertStringIncludes } from "tensorlet/assert";
import { createTestServer, type TestServer } from "tensorlet/testing";

const echo = defineModel({ predict: (inputs) => inputs });
const affine = defineModel({
  input: { x: { dtype: "float32", shape: [-1, 2] } },
  output: { y: { dtype: "float32", shape: [-1, 2] }, n: { dtype: "int64" } },
  params: { scale: { type: "number", default: 2 } },
  predict: ({ x }, { params: { scale } }) => ({
    y: x.data.map((v) => v * scale),
    n: BigInt64Array.of(BigInt(x.data.length)),
  }),
});
const tokens = defineModel({
  input: {},
  params: { prompt: { type: "string", default: "a b" } },
  async *stream(_input, { params }) {
    for (const token of params.prompt.split(" ")) {
      if (token === "fail") throw new ModelError("aborted", "broke");
      yield `${token}.`;
    }
  },
});

const URL_BASE = "http://localhost/v2";
const HEADER = "inference-header-content-length";

function post(server: TestServer, path: string, body: unknown, headers: HeadersInit = {}): Promise<Response> {
  const content = typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
  return server.fetch(new Request(`${URL_BASE}/${path}`, { method: "POST", body: content as BodyInit, headers }));
}

const get = (server: TestServer, path: string) => server.fetch(new Request(`${URL_BASE}${path}`));

async function ask(server: TestServer, path: string, body: unknown, headers: HeadersInit = JSON_TYPE) {
  const response = await post(server, path, body, headers);
  const text = await response.text();
  return { status: response.status, text, json: text.startsWith("{") ? JSON.parse(text) : undefined };
}

const JSON_TYPE = { "content-type": "application/json" };
const x = { name: "x", datatype: "FP32", shape: [1, 2], data: [1, 2] };
const floats = (...values: readonly number[]) => new Uint8Array(Float32Array.from(values).buffer);

function binary(json: object, ...tail: readonly Uint8Array[]): readonly [Uint8Array, HeadersInit] {
  const head = new TextEncoder().encode(JSON.stringify(json));
  return [new Uint8Array([head, ...tail].flatMap((part) => [...part])), { [HEADER]: `${head.length}` }];
}

async function readBinary(response: Response) {
  const bytes = new Uint8Array(await response.arrayBuffer());
  const length = Number(response.headers.get(HEADER));
  return { json: JSON.parse(new TextDecoder().decode(bytes.subarray(0, length))), tail: bytes.subarray(length) };
}

Deno.test("infer answers in JSON", async () => {
  await using server = await createTestServer({ affine });
  const request = { id: "seven", inputs: [x], parameters: { scale: 3 }, outputs: [{ name: "n" }, { name: "y" }] };
  for (const path of ["models/affine/infer", "models/affine/versions/1/infer"]) {
    const { status, json } = await ask(server, path, request);
    assertEquals([status, json], [200, {
      id: "seven",
      model_name: "affine",
      model_version: "1",
      outputs: [
        { name: "n", datatype: "INT64", shape: [1], data: [2] },
        { name: "y", datatype: "FP32", shape: [1, 2], data: [3, 6] },
      ],
    }]);
  }
  const nested = { inputs: [{ ...x, shape: [2, 2], data: [[1, 2], [3, 4]] }] };
  assertEquals((await ask(server, "models/affine/infer", nested)).json.outputs[0].data, [2, 4, 6, 8]);
});

Deno.test("infer's JSON is exact in every datatype", async () => {
  await using server = await createTestServer({ echo });
  const same = async (datatype: string, elements: string, wanted = elements) => {
    const count = elements.split(",").length;
    const body = `{"inputs":[{"name":"a","datatype":"${datatype}","shape":[${count}],"data":[${elements}]}]}`;
    const { text } = await ask(server, "models/echo/infer", body);
    assertStringIncludes(text, `"data":[${wanted}]`, datatype);
  };
  await same("BOOL", "true,false");
  await same("INT8", "-128,0,127");
  await same("INT16", "-32768,32767");
  await same("INT32", "-2147483648,2147483647");
  await same("INT64", "-9223372036854775808,9007199254740993,0,9223372036854775807");
  await same("UINT8", "0,255");
  await same("UINT16", "0,65535");
  await same("UINT32", "0,4294967295");
  await same("UINT64", "0,9007199254740993,18446744073709551615");
  await same("FP16", "0.5,65504");
  await same("BF16", "1.5,-3");
  await same(
    "FP32",
    '0.5,-0.0,"NaN","Infinity","-Infinity",1e20',
    '0.5,-0.0,"NaN","Infinity","-Infinity",100000002004087730000',
  );
  await same(
    "FP64",
    "0.1,5e-324,1.7976931348623157e+308,12345678901234567890",
    "0.1,5e-324,1.7976931348623157e+308,12345678901234567000",
  );
  await same("BYTES", '"é\\ud83d\\ude00","","\\u0000"', '"é😀","","\\u0000"');
});

Deno.test("a large integer is exact as a parameter too, and refused where it would be rounded", async () => {
  const seed = defineModel({ params: { seed: { type: "integer" } }, predict: () => [] });
  const talk = defineModel({
    async *chat(_message, { session }) {
      yield session.id;
    },
  });
  await using server = await createTestServer({ seed, talk });
  const { text } = await ask(server, "models/seed/infer", '{"inputs":[],"parameters":{"seed":9007199254740993}}');
  assertStringIncludes(text, 'got \\"9007199254740993\\"');
  const input = { name: "text_input", datatype: "BYTES", shape: [1], data: ["hi"] };
  const body = `{"inputs":[${
    JSON.stringify(input)
  }],"parameters":{"sequence_id":18446744073709551615,"sequence_start":true}}`;
  const { json } = await ask(server, "models/talk/infer", body);
  assertEquals(json.outputs[0].data, ["18446744073709551615"]);
});

Deno.test("infer takes tensors as bytes behind the JSON, and gives them so", async () => {
  await using server = await createTestServer({ affine, echo });
  const input = { name: "x", datatype: "FP32", shape: [1, 2], parameters: { binary_data_size: 8 } };
  const outputs = [{ name: "n" }, { name: "y", parameters: { binary_data: true } }];
  const [body, headers] = binary({ inputs: [input], outputs }, floats(1, 2));
  const response = await post(server, "models/affine/infer", body, headers);
  assertEquals([response.status, response.headers.get("content-type")], [200, "application/octet-stream"]);
  const { json, tail } = await readBinary(response);
  assertEquals(json.outputs, [
    { name: "n", datatype: "INT64", shape: [1], data: [2] },
    { name: "y", datatype: "FP32", shape: [1, 2], parameters: { binary_data_size: 8 } },
  ]);
  assertEquals([...tail], [...floats(2, 4)]);
  const all = await post(
    server,
    "models/echo/infer",
    ...binary(
      {
        inputs: [
          { name: "a", datatype: "BYTES", shape: [2], parameters: { binary_data_size: 9 } },
          { name: "b", datatype: "INT8", shape: [1], data: [5] },
          { name: "c", datatype: "FP64", shape: [1], parameters: { binary_data_size: 8 } },
        ],
        parameters: { binary_data_output: true },
      },
      Uint8Array.of(1, 0, 0, 0, 97, 0, 0, 0, 0),
      new Uint8Array(Float64Array.of(0.1).buffer),
    ),
  );
  const answer = await readBinary(all);
  assertEquals(answer.json.outputs.map(({ parameters }: { parameters: object }) => parameters), [
    { binary_data_size: 9 },
    { binary_data_size: 1 },
    { binary_data_size: 8 },
  ]);
  assertEquals([...answer.tail.subarray(0, 10)], [1, 0, 0, 0, 97, 0, 0, 0, 0, 5]);
});

Deno.test("infer takes a body that is the one tensor", async () => {
  const upper = defineModel({
    input: { dtype: "string" },
    output: { dtype: "string" },
    predict: ({ data }) => data.map((text) => text.toUpperCase()),
  });
  await using server = await createTestServer({ affine, upper, echo });
  const { json, tail } = await readBinary(
    await post(server, "models/affine/infer", floats(1, 2, 3, 4), { [HEADER]: "0" }),
  );
  assertEquals(json.outputs[0].shape, [2, 2]);
  assertEquals([...tail.subarray(0, 16)], [...floats(2, 4, 6, 8)]);
  const text = await readBinary(await post(server, "models/upper/infer", "é", { [HEADER]: "0" }));
  assertEquals([...text.tail], [2, 0, 0, 0, 0xc3, 0x89]);
  assertMatch(
    (await ask(server, "models/affine/infer", floats(1), { [HEADER]: "0" })).text,
    /does not fill FP32\[-1,2\]/,
  );
  assertMatch(
    (await ask(server, "models/echo/infer", floats(1), { [HEADER]: "0" })).text,
    /does not declare one input/,
  );
});

Deno.test("infer refuses what it cannot read, as {error}, with a status that says whose fault it is", async () => {
  await using server = await createTestServer({ affine, tokens, echo });
  const refused = async (status: number, wanted: string, body: unknown, headers: HeadersInit = JSON_TYPE) => {
    const answer = await ask(server, "models/affine/infer", body, headers);
    assertStringIncludes(answer.json.error, wanted);
    assertEquals([answer.status, Object.keys(answer.json)], [status, ["error"]]);
  };
  await refused(400, "Cannot read the body as JSON", "{");
  await refused(400, "the body is no JSON object", "[]");
  await refused(400, "nested more than 100 deep", "[".repeat(101) + "]".repeat(101));
  await refused(415, "wanted application/json", "{}", { "content-type": "text/plain" });
  await refused(400, "inputs is no array of objects", { inputs: [1] });
  await refused(400, "name of inputs[0] is no text", { inputs: [{}] });
  await refused(400, "inputs[0].shape is no array of whole numbers", { inputs: [{ ...x, shape: [1.5] }] });
  await refused(400, "inputs[0].data is no array", { inputs: [{ ...x, data: 1 }] });
  await refused(400, 'element 1 is "\\"a\\"", wanted a number for "FP32"', { inputs: [{ ...x, data: [1, "a"] }] });
  await refused(400, "got 1 elements, its shape takes 2", { inputs: [{ ...x, data: [1] }] });
  await refused(400, 'got datatype "INT8"', { inputs: [{ ...x, datatype: "INT8" }] });
  await refused(400, 'parameter "a" of the request is no text', { parameters: { a: [] }, inputs: [x] });
  await refused(400, 'unexpected inference output "z"', { inputs: [x], outputs: [{ name: "z" }] });
  await refused(400, "has data and a binary_data_size", { inputs: [{ ...x, parameters: { binary_data_size: 0 } }] });
  await refused(400, "binary_data_size is 8, 0 bytes are left", {
    inputs: [{ ...x, data: undefined, parameters: { binary_data_size: 8 } }],
  });
  await refused(400, "4 bytes follow those of its inputs", ...binary({ inputs: [x] }, floats(1)));
  await refused(400, 'header inference-header-content-length is "9999"', "{}", { [HEADER]: "9999" });
  await refused(400, 'header inference-header-content-length is "-1"', "{}", { [HEADER]: "-1" });
  assertEquals((await ask(server, "models/nothing/infer", { inputs: [] })).status, 404);
  assertEquals((await ask(server, "models/affine/versions/9/infer", { inputs: [] })).status, 404);
  assertEquals((await ask(server, "models/tokens/infer", { inputs: [] })).status, 501);
  const overflow = { inputs: [{ name: "a", datatype: "UINT8", shape: [1], data: [256] }] };
  assertStringIncludes((await ask(server, "models/echo/infer", overflow)).json.error, "element 0 is");
  const big = '{"inputs":[{"name":"a","datatype":"INT64","shape":[1],"data":[9223372036854775808]}]}';
  assertStringIncludes((await ask(server, "models/echo/infer", big)).json.error, "element 0 is 9223372036854775808");
});

Deno.test("byte strings that are no texts go out as bytes only", async () => {
  const bytes = defineModel({ predict: () => tensor("bytes", [Uint8Array.of(255)]) });
  await using server = await createTestServer({ bytes });
  const { status, json } = await ask(server, "models/bytes/infer", { inputs: [] });
  assertEquals([status, json.error], [
    400,
    'Cannot write output "OUTPUT__0" as JSON: element 0 is not valid UTF-8; ask for binary_data',
  ]);
  const parameters = { binary_data_output: true };
  const { tail } = await readBinary(await post(server, "models/bytes/infer", { parameters }, JSON_TYPE));
  assertEquals([...tail], [1, 0, 0, 0, 255]);
});

Deno.test("generate takes inputs and params by their names, and joins tokens", async () => {
  const greet = defineModel({
    input: { name: { dtype: "string", shape: [1] }, times: { dtype: "int32", optional: true } },
    output: { greeting: { dtype: "string" }, counts: { dtype: "int64" } },
    params: { loud: { type: "boolean", default: false } },
    predict: ({ name, times }, { params }) => ({
      greeting: [`hi ${name.data[0]}${params.loud ? "!" : ""}`],
      counts: BigInt64Array.from(times?.data ?? [1, 2], BigInt),
    }),
  });
  await using server = await createTestServer({ tokens, greet });
  const named = { model_name: "tokens", model_version: "1" };
  assertEquals((await ask(server, "models/tokens/generate", { text_input: "x y" })).json, {
    ...named,
    text_output: "x.y.",
  });
  assertEquals((await ask(server, "models/tokens/generate", { parameters: { max_tokens: 1 }, id: "7" })).json, {
    id: "7",
    ...named,
    text_output: "a.",
  });
  assertEquals((await ask(server, "models/tokens/generate", { prompt: "z" })).json.text_output, "z.");
  const { json } = await ask(server, "models/greet/generate", { text_input: "Jo", loud: true, times: [4, 5, 6] });
  assertEquals([json.greeting, json.counts], ["hi Jo!", [4, 5, 6]]);
  assertStringIncludes(
    (await ask(server, "models/greet/generate", { name: "Jo", other: 1 })).json.error,
    'Cannot accept param "other"',
  );
  assertEquals((await ask(server, "models/tokens/generate", { text_input: "a fail" })).status, 409);
  assertEquals((await ask(server, "models/greet/generate", { other: {} })).status, 400);
});

Deno.test("generate ends a function that gives more than one answer could be, though it never waits", async () => {
  const ended: string[] = [];
  async function* endless<T>(name: string, chunk: T): AsyncGenerator<T, void, undefined> {
    try {
      for (;;) yield chunk;
    } finally {
      ended.push(name);
    }
  }
  await using server = await createTestServer({
    words: defineModel({ input: {}, stream: () => endless("words", "again ") }),
    numbers: defineModel({
      input: {},
      output: { dtype: "float32" },
      stream: () => endless("numbers", Float32Array.of(1)),
    }),
  }, { limits: { maxMessageBytes: 100_000 } });
  const asks = ["words", "numbers"].map((name) => ask(server, `models/${name}/generate`, {}));
  assertEquals((await Promise.all(asks)).map(({ status, json }) => [status, json.error]), [
    [
      400,
      'Function "words" gave an answer that takes more than 100000 bytes (option maxMessageBytes): ' +
      "bound it by max_tokens, or use generate_stream",
    ],
    [400, 'Function "numbers" gave several answers, which generate cannot join: use generate_stream'],
  ]);
  assertEquals(ended.toSorted(), ["numbers", "words"]);
});

Deno.test("generate_stream sends an event for each token, the failure among them", async () => {
  await using server = await createTestServer({ tokens, affine });
  const events = async (body: object, path = "models/tokens/generate_stream") => {
    const response = await post(server, path, body, JSON_TYPE);
    const text = await response.text();
    if (response.status !== 200) return [`${response.status}`];
    assertMatch(response.headers.get("content-type")!, /^text\/event-stream/);
    return text.split("\n\n").filter(Boolean).map((event) => {
      const json = JSON.parse(event.slice("data: ".length));
      return json.text_output ?? json.error ?? json.y;
    });
  };
  assertEquals(await events({ text_input: "x y z" }), ["x.", "y.", "z."]);
  assertEquals(await events({ text_input: "x fail y" }), ["x.", "broke"]);
  assertEquals(await events({ text_input: "fail" }), ["409"], "before the first event there is a status");
  assertEquals(await events({ x: [1, 2] }, "models/affine/generate_stream"), [[2, 4]]);
});

Deno.test("generate_stream stops the function when its reader leaves", async () => {
  const stopped = Promise.withResolvers<void>();
  const endless = defineModel({
    input: {},
    async *stream() {
      try {
        for (;;) yield "x";
      } finally {
        stopped.resolve();
      }
    },
  });
  await using server = await createTestServer({ endless });
  const response = await post(server, "models/endless/generate_stream", {}, JSON_TYPE);
  const reader = response.body!.getReader();
  await reader.read();
  await reader.cancel();
  await stopped.promise;
});

Deno.test("what there is to know is where the protocol has it", async () => {
  const broken = defineModel({ load: () => Promise.reject(new Error("no weights")), predict: () => [] });
  await using server = await createTestServer({ affine, tokens });
  await using sick = await createTestServer({ affine, broken });
  const json = async (path: string, of = server) => await (await get(of, path)).json();
  assertEquals((await json("")).name, "tensorlet");
  assertEquals([await json("/health/live"), await json("/health/ready")], [{ live: true }, { ready: true }]);
  const unready = await get(sick, "/health/ready");
  assertEquals([unready.status, await unready.json()], [503, { ready: false }]);
  assertEquals(await json("/models/affine/ready"), { name: "affine", ready: true });
  const down = await get(sick, "/models/broken/versions/1/ready");
  assertEquals([down.status, await down.json()], [503, { name: "broken", ready: false }]);
  assertEquals((await json("/models/affine")).inputs, [{ name: "x", datatype: "FP32", shape: [-1, 2] }]);
  const config = await json("/models/affine/versions/1/config");
  assertEquals(config.input, [{ name: "x", data_type: "TYPE_FP32", dims: [-1, 2], optional: false }]);
  assertEquals((await json("/models/tokens/config")).model_transaction_policy, { decoupled: true });
  await ask(server, "models/affine/infer", { inputs: [x] });
  const [stats] = (await json("/models/affine/stats")).model_stats;
  assertEquals([stats.name, stats.inference_stats.success.count], ["affine", 1]);
  assertEquals((await json("/models/stats")).model_stats.length, 2);
  assertEquals((await get(server, "/models/nothing")).status, 404);
});

Deno.test("the repository is listed, loaded and unloaded", async () => {
  await using server = await createTestServer({ affine, tokens });
  const index = async (body: unknown = "") => await (await post(server, "repository/index", body, JSON_TYPE)).json();
  assertEquals(await index(), [
    { name: "affine", version: "1", state: "READY", reason: "" },
    { name: "tokens", version: "1", state: "READY", reason: "" },
  ]);
  assertEquals((await ask(server, "repository/models/affine/unload", "", {})).status, 200);
  assertEquals((await ask(server, "models/affine/infer", { inputs: [x] })).status, 503);
  assertEquals((await index({ ready: true })).length, 1);
  assertEquals((await ask(server, "repository/models/affine/load", { parameters: {} })).status, 200);
  assertEquals((await ask(server, "models/affine/infer", { inputs: [x] })).status, 200);
  assertEquals((await ask(server, "repository/models/nothing/load", "", {})).status, 404);
  assertEquals((await ask(server, "repository/models/affine/load", { parameters: { config: "{}" } })).status, 400);
  assertEquals((await ask(server, "repository/index", { ready: 1 })).status, 400);
});
