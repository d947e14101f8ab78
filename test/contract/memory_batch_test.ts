// inference.v1.ModelInference/BatchPredict, bytes in and out.
import { defineModel, ModelError } from "tensorlet";
import { assert, assertEquals } from "tensorlet/assert";
import { createTestServer } from "tensorlet/testing";
import { FakeClock, settled } from "../harness/clock.ts";
import { call } from "../harness/messages.ts";

const FLOAT = { dtype: "float32", shape: [2] } as const;

// Answers with the vector's sum and how many came together; refuses -1.
const chunked = defineModel({
  input: FLOAT,
  output: { dtype: "float32" },
  params: { plus: { type: "number", default: 0 } },
  batching: { maxSize: 3 },
  batch: (items) =>
    items.map(({ input, params }) =>
      input.data[0] === -1
        ? new ModelError("failed_precondition", "Cannot take -1")
        : Float32Array.of(input.data[0]! + input.data[1]! + params.plus, items.length)
    ),
});

const vectors = (count: number) => Array.from({ length: count }, (_, i) => ({ id: `v${i}`, features: [i, 1] }));
const batch = async (requests: Iterable<object> | AsyncIterable<object>, metadata: HeadersInit = {}) => {
  await using server = await createTestServer({ chunked });
  const { code, message, replies } = await call(server, "batch", requests, { metadata });
  return { code, message, result: replies[0] };
};
// deno-lint-ignore no-explicit-any
const outputs = (result: any) => result.results.map(({ output_tensor }: any) => output_tensor);

Deno.test("BatchPredict answers in order of arrival, in chunks of the function's size", async () => {
  const { code, result } = await batch(vectors(7));
  assertEquals([code, result.total_processed], ["ok", 7]);
  assertEquals(outputs(result), [[1, 3], [2, 3], [3, 3], [4, 3], [5, 3], [6, 3], [7, 1]]);
  assert(result.results.every(({ model_version }: { model_version: string }) => model_version === "1"));
  const latencies = result.results.map(({ latency_ms }: { latency_ms: number }) => latency_ms);
  assert(latencies.every((ms: number) => ms > 0) && latencies[0] === latencies[2], `${latencies}`); // its chunk's
});

Deno.test("BatchPredict reads params from the metadata", async () => {
  const { result } = await batch(vectors(1), { "param-plus": "0.5" });
  assertEquals(outputs(result), [[1.5, 1]]);
});

Deno.test("BatchPredict of an empty stream is OK and empty", async () => {
  const { code, result } = await batch([]);
  assertEquals([code, result.total_processed, result.results], ["ok", 0, []]);
});

Deno.test("BatchPredict names a bad vector by id and position", async () => {
  const bad = async (vector: object) => (await batch([...vectors(4), vector])).message;
  assertEquals(
    await bad({ id: "odd", features: [1, 2, 3] }),
    'Vector "odd" at position 4: Cannot shape input 0: 3 values do not fill shape [2]',
  );
  assertEquals(
    await bad({ id: "", features: [1] }),
    'Vector "" at position 4: Cannot shape input 0: 1 values do not fill shape [2]',
  );
  assertEquals(await bad({ id: "v0", features: [-1, 0] }), 'Vector "v0" at position 4: Cannot take -1');
  const { message } = await batch([{ id: "x".repeat(5000), features: [] }]);
  assert(message.startsWith(`Vector "${"x".repeat(100)}…" at position 0: `), message);
});

Deno.test("BatchPredict keeps the code of the failure", async () => {
  assertEquals((await batch([{ features: [1] }])).code, "invalid_argument");
  assertEquals((await batch([{ features: [-1, 0] }])).code, "failed_precondition");
  const params = await batch(vectors(2), { "param-plus": "x" });
  assertEquals(params.message, 'Vector "v0" at position 0: Cannot accept param "plus": got "x", wanted a number');
});

Deno.test("BatchPredict takes ids that repeat", async () => {
  const { result } = await batch([{ id: "a", features: [1, 1] }, { id: "a", features: [2, 2] }]);
  assertEquals(outputs(result), [[2, 2], [4, 2]]);
});

Deno.test("BatchPredict runs predict for each vector where there is no batch handler", async () => {
  const each = defineModel({
    input: FLOAT,
    output: { dtype: "float32" },
    predict: ({ data }) => data[0] === 40 ? Promise.reject(new Error("password")) : data.subarray(0, 1),
  });
  await using server = await createTestServer({ each });
  const { replies } = await call(server, "batch", vectors(40));
  assertEquals(outputs(replies[0]), Array.from({ length: 40 }, (_, i) => [i]));
  const { code, message } = await call(server, "batch", vectors(50), { metadata: { "request-id": "r" } });
  assertEquals(code, "internal");
  assert(message.startsWith('Vector "v40" at position 40: The function failed (request id'), message);
});

Deno.test("BatchPredict does not read on while the function is busy", async () => {
  const read: number[] = [];
  const whenBusy: number[] = [];
  const slow = defineModel({
    input: FLOAT,
    output: { dtype: "float32" },
    batching: { maxSize: 4 },
    async batch(items) {
      await settled(); // lets the reader read, were it to
      whenBusy.push(read.length);
      return items.map(() => new Float32Array(1));
    },
  });
  async function* flood() {
    for (const vector of vectors(12)) yield (read.push(1), vector);
  }
  await using server = await createTestServer({ slow });
  assertEquals((await call(server, "batch", flood())).code, "ok");
  assertEquals(whenBusy, [4, 8, 12]);
});

Deno.test("BatchPredict bounds its result while it grows", async () => {
  let ran = 0;
  const big = defineModel({
    output: { dtype: "float32" },
    batching: { maxSize: 1 },
    batch: () => (ran++, [new Float32Array(100)]),
  });
  await using server = await createTestServer({ big }, { limits: { maxMessageBytes: 1000 } });
  const { code, message, replies } = await call(server, "batch", vectors(1000));
  assertEquals([code, replies.length, ran], ["resource_exhausted", 0, 3]);
  assertEquals(
    message,
    "Cannot send the result of 3 vectors: it is larger than a message may be, 1000 bytes (option maxMessageBytes); send fewer vectors",
  );
  assertEquals((await call(server, "batch", vectors(2))).code, "ok");
});

Deno.test("BatchPredict ends at the deadline, though its vectors never do", async () => {
  using clock = new FakeClock();
  const started = Promise.withResolvers<void>();
  const stuck = defineModel({ input: FLOAT, predict: () => (started.resolve(), new Promise<never>(() => {})) });
  await using server = await createTestServer({ stuck });
  const late = call(server, "batch", vectors(2), { timeoutMs: 50 });
  await started.promise;
  await clock.advance(50);
  assertEquals((await late).code, "deadline_exceeded");
});
