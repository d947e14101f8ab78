// inference.GRPCInferenceService/ModelStreamInfer, bytes in and out.
import { defineModel, ModelError, tensor } from "tensorlet";
import { assertEquals, assertStringIncludes } from "tensorlet/assert";
import { createTestServer, type TestServer } from "tensorlet/testing";
import { settled } from "../harness/clock.ts";
import { call } from "../harness/messages.ts";

const tokens = defineModel({
  input: {},
  params: { prompt: { type: "string", default: "a b" }, last: { type: "boolean" } },
  async *stream(_input, { params }) {
    const words = params.prompt.split(" ");
    for (const [i, token] of words.entries()) {
      if (token === "fail") throw new ModelError("aborted", "broke");
      yield { token, final: params.last === true && i === words.length - 1 };
    }
  },
});
const talk = defineModel({
  session: { init: () => ({ turns: 0 }) },
  async *chat({ content }, { session }) {
    yield `${++session.state.turns} `;
    yield content;
  },
});

const text = (value: string) => ({
  name: "text_input",
  datatype: "BYTES",
  shape: [1],
  contents: { bytes_contents: [new TextEncoder().encode(value)] },
});
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

async function ask(
  server: TestServer,
  requests: Iterable<object> | AsyncIterable<object>,
  options?: Parameters<TestServer["rpc"]>[2],
) {
  const { code, message, replies } = await call(server, "streamInfer", requests, options);
  const lines = replies.map(({ error_message, infer_response: response }) => {
    const { id, outputs, raw_output_contents: raw, parameters } = response;
    const final = parameters.triton_final_response.bool_param ? "." : "";
    if (error_message) return `${id}! ${error_message}`;
    const first = outputs[0];
    if (!first) return `${id}${final}`;
    const data = first.contents ? decode(first.contents.bytes_contents[0]) : `${[...raw[0]]}`;
    return `${id} ${data}${final}`;
  });
  return { code, message, lines };
}

Deno.test("ModelStreamInfer answers with each token of each request", async () => {
  await using server = await createTestServer({ tokens });
  const prompt = (id: string, value: string, parameters: object = {}) => ({
    model_name: "tokens",
    id,
    inputs: [text(value)],
    parameters,
  });
  assertEquals((await ask(server, [prompt("1", "x y")])).lines, ["1 x", "1 y"]);
  assertEquals((await ask(server, [prompt("1", "x y", { last: { bool_param: true } })])).lines, ["1 x", "1 y."]);
  assertEquals((await ask(server, [prompt("1", "x y", { max_tokens: { int64_param: 1 } })])).lines, ["1 x."]);
  const empty = { triton_enable_empty_final_response: { bool_param: true } };
  assertEquals((await ask(server, [prompt("1", "x y", empty)])).lines, ["1 x", "1 y", "1."]);
  const { lines } = await ask(server, [prompt("1", "a b c"), prompt("2", "d e")]);
  assertEquals(lines.filter((line) => line.startsWith("1")), ["1 a", "1 b", "1 c"]);
  assertEquals(lines.filter((line) => line.startsWith("2")), ["2 d", "2 e"]);
});

Deno.test("ModelStreamInfer answers for predict once, in the order of the requests", async () => {
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow = defineModel({
    predict: async ([x]) => {
      const i = Number(x!.data[0]);
      await gates[i]?.promise;
      return tensor("int8", [i]);
    },
  });
  await using server = await createTestServer({ slow });
  const request = (i: number) => ({
    model_name: "slow",
    id: `${i}`,
    inputs: [{ name: "x", datatype: "INT8", shape: [1] }],
    raw_input_contents: [Uint8Array.of(i)],
  });
  const asking = ask(server, [request(0), request(1), request(2)]);
  await settled();
  gates[1]!.resolve();
  await settled();
  gates[0]!.resolve();
  assertEquals((await asking).lines, ["0 0.", "1 1.", "2 2."]);
});

Deno.test("a request that fails is answered by its error, and the stream lives", async () => {
  await using server = await createTestServer({ tokens });
  const request = (id: string, rest: object) => ({ model_name: "tokens", id, ...rest });
  const { code, lines } = await ask(server, [
    request("1", { inputs: [text("a fail")] }),
    { model_name: "nothing", id: "2" },
    request("3", { inputs: [text("a")], raw_input_contents: [new Uint8Array(4)] }),
    request("4", { parameters: { max_tokens: { string_param: "x" } } }),
    request("5", { inputs: [text("z")] }),
  ]);
  assertEquals(code, "ok");
  assertEquals(lines.filter((line) => line.startsWith("1")), ["1 a", "1! broke"]);
  assertStringIncludes(lines.find((line) => line.startsWith("2!"))!, 'There is no model "nothing"');
  assertStringIncludes(lines.find((line) => line.startsWith("!"))!, "contents must not be specified");
  assertStringIncludes(lines.find((line) => line.startsWith("4!"))!, 'Cannot read parameter "max_tokens"');
  assertEquals(lines.filter((line) => line.startsWith("5")), ["5 z"]);
});

Deno.test("a request that fails ends the stream where the client wants the status", async () => {
  await using server = await createTestServer({ tokens });
  const { code, message } = await ask(server, [{ model_name: "nothing" }], { metadata: { triton_grpc_error: "true" } });
  assertEquals([code, message], ["not_found", 'There is no model "nothing"']);
});

Deno.test("requests of one sequence are turns of a chat, one after the other", async () => {
  await using server = await createTestServer({ talk });
  const turn = (id: string, sequence: number, content: string, start = false) => ({
    model_name: "talk",
    id,
    inputs: [text(content)],
    parameters: { sequence_id: { uint64_param: sequence }, sequence_start: { bool_param: start } },
  });
  const { lines } = await ask(server, [
    turn("a1", 1, "x", true),
    turn("b1", 2, "y", true),
    turn("a2", 1, "z"),
    turn("c1", 3, "w"),
  ]);
  const of = (id: string) => lines.filter((line) => line.startsWith(id));
  assertEquals([of("a1"), of("a2"), of("b1")], [["a1 1 ", "a1 x."], ["a2 2 ", "a2 z."], ["b1 1 ", "b1 y."]]);
  assertStringIncludes(of("c1")[0]!, "must specify the START flag");
});

Deno.test("what a client asked for stops when it leaves", async () => {
  const stopped = Promise.withResolvers<void>();
  const started = Promise.withResolvers<void>();
  const endless = defineModel({
    input: {},
    async *stream(_input, { signal }) {
      try {
        for (;;) {
          yield "x";
          started.resolve();
          signal.throwIfAborted();
        }
      } finally {
        stopped.resolve();
      }
    },
  });
  await using server = await createTestServer({ endless });
  const controller = new AbortController();
  const asking = ask(server, [{ model_name: "endless" }], { signal: controller.signal });
  await started.promise;
  controller.abort();
  assertEquals((await asking).code, "cancelled");
  await stopped.promise;
});

Deno.test("an idle stream ends with the server", async () => {
  const server = await createTestServer({ tokens });
  const hold = Promise.withResolvers<void>();
  const asking = ask(
    server,
    (async function* () {
      yield { model_name: "tokens", id: "1", inputs: [text("a b")] };
      await hold.promise;
    })(),
  );
  await settled();
  await server[Symbol.asyncDispose]();
  const { code, lines } = await asking;
  hold.resolve();
  assertEquals([code, lines], ["unavailable", ["1 a", "1 b"]]);
});
