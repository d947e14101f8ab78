// GET /metrics, after calls of all modes over their protocols: bytes in and out.
import { defineModel, ModelError } from "tensorlet";
import { assert, assertEquals } from "tensorlet/assert";
import { createTestServer, type ProtocolAdapter, type TestServer } from "tensorlet/testing";
import { findEntry } from "../../runtime/core/catalog.ts";
import { callBase } from "../../runtime/protocols/adapter.ts";
import { metrics } from "../../runtime/protocols/metrics/adapter.ts";
import { settled } from "../harness/clock.ts";
import { type Exposition, parseExposition } from "../harness/exposition.ts";
import { call } from "../harness/messages.ts";
import { promtool } from "../harness/promtool.ts";

const FLOAT = { dtype: "float32" } as const;

async function scrape(server: TestServer): Promise<Exposition> {
  const response = await server.fetch(new Request("http://localhost/metrics"));
  assertEquals(response.status, 200);
  return parseExposition(await response.text());
}

// 1 is one, 2 is refused, 3 waits until its caller leaves.
const all = defineModel({
  input: FLOAT,
  output: FLOAT,
  async predict({ data }, { signal }) {
    if (data[0] === 2) throw new ModelError("failed_precondition", "Cannot take 2");
    if (data[0] === 3) await new Promise((_, reject) => signal.addEventListener("abort", reject));
    return data;
  },
  async *stream() {
    yield* ["a", "b", "c"];
  },
  async *chat(message) {
    yield message.content;
    yield "!";
  },
});

const ask = (value: number, model = "all") => ({ model_id: model, input_tensor: [value] });
const labels = (kind: string, protocol: string) => `kind="${kind}",model="all",version="1",protocol="${protocol}"`;

Deno.test("/metrics counts calls of every kind, with their tokens and sessions", async () => {
  await using server = await createTestServer({ all });
  await call(server, "predict", [ask(1)]);
  await call(server, "predict", [ask(1)]);
  await call(server, "stream", [ask(1)]);
  await call(server, "batch", [{ id: "a", features: [1] }, { id: "b", features: [1] }]);
  await call(server, "chat", [{ session_id: "s", content: "hi" }, { session_id: "s", content: "ho" }]);
  const metrics = await scrape(server);
  assertEquals([...metrics.of("tensorlet_requests_total")], [
    [`${labels("predict", "inference_v1")},code="ok"`, 2],
    [`${labels("stream", "inference_v1")},code="ok"`, 1],
    [`${labels("batch", "inference_v1")},code="ok"`, 1],
    [`${labels("chat", "inference_v1")},code="ok"`, 2],
  ]);
  assertEquals(metrics.sum("tensorlet_requests_in_flight"), 0);
  assertEquals(metrics.sum("tensorlet_request_duration_seconds_count"), 6);
  assertEquals([...metrics.of("tensorlet_tokens_total")], [
    [labels("stream", "inference_v1"), 3],
    [labels("chat", "inference_v1"), 4],
  ]);
  assertEquals([...metrics.of("tensorlet_time_to_first_token_seconds_count")].map(([, count]) => count), [1, 2]);
  for (const stage of ["queue", "compute"]) {
    const counts = [...metrics.of(`tensorlet_${stage}_duration_seconds_count`)];
    assertEquals(
      counts,
      ["predict", "stream", "batch", "chat"].map((kind, i) => [
        `kind="${kind}",model="all",version="1"`,
        [2, 1, 1, 2][i]!,
      ]),
    );
  }
  assertEquals([...metrics.of("tensorlet_batch_size_sum")], [[`model="all",version="1"`, 2]]);
  assertEquals([metrics.sum("tensorlet_sessions"), metrics.sum("tensorlet_load_duration_seconds_count")], [1, 1]);
  assertEquals(metrics.sum("tensorlet_instances", `state="idle"`), 1);
  assertEquals(await promtool(["check", "metrics"], metrics.text) ?? "", "");
  assert(metrics.sum("tensorlet_build_info") === 1 && metrics.sum("process_resident_memory_bytes") > 1e6);
});

Deno.test("/metrics counts failures by their code, callers that leave, and what is in flight", async () => {
  await using server = await createTestServer({ all });
  assertEquals((await call(server, "predict", [ask(2)])).code, "failed_precondition");
  assertEquals((await call(server, "predict", [ask(3)], { timeoutMs: 1 })).code, "deadline_exceeded");
  const leaving = new AbortController();
  const left = call(server, "predict", [ask(3)], { signal: leaving.signal });
  await settled();
  const during = await scrape(server);
  assertEquals(during.sum("tensorlet_requests_in_flight"), 1);
  assertEquals([during.sum("tensorlet_calls_running"), during.sum("tensorlet_instances", `state="busy"`)], [1, 1]);
  leaving.abort(new ModelError("cancelled", "The client left"));
  await left;
  assertEquals([...(await scrape(server)).of("tensorlet_requests_total")], [
    [`${labels("predict", "inference_v1")},code="failed_precondition"`, 1],
    [`${labels("predict", "inference_v1")},code="deadline_exceeded"`, 1],
    [`${labels("predict", "inference_v1")},code="cancelled"`, 1],
  ]);
});

Deno.test("/metrics has one series for all that calls nothing", async () => {
  await using server = await createTestServer({ all });
  await call(server, "predict", [ask(1)]);
  const before = (await scrape(server)).text.split("\n").length;
  for (let i = 0; i < 500; i++) {
    const name = crypto.randomUUID();
    await call(server, "predict", [ask(1, name)]);
    await call(server, "tensors", [{ model_name: name, inputs: [] }]);
    await call(server, "stream", [ask(1, `all@${name}`)]);
    await server.rpc("/inference.v1.ModelInference/Predict", [new Uint8Array([255])]);
  }
  const metrics = await scrape(server);
  const refused = [...metrics.of("tensorlet_requests_total")].filter(([labels]) => labels.includes(`model=""`));
  assertEquals(refused.map(([labels]) => labels), [
    `kind="",model="",version="",protocol="inference_v1",code="not_found"`,
    `kind="",model="",version="",protocol="inference_v1",code="invalid_argument"`,
    `kind="",model="",version="",protocol="inference",code="not_found"`,
  ]);
  assertEquals(refused.map(([, count]) => count), [1000, 500, 500]);
  assertEquals(metrics.text.split("\n").length, before + 3);
});

Deno.test("/metrics has the size of each batch that was gathered, and the wait of each of its members", async () => {
  const gate = Promise.withResolvers<void>();
  const sizes: number[] = [];
  const gathering = defineModel({
    input: FLOAT,
    output: FLOAT,
    batching: { maxSize: 4 },
    async batch(items) {
      sizes.push(items.length);
      await gate.promise;
      return items.map(({ input }) => input.data);
    },
  });
  await using server = await createTestServer({ gathering });
  const request = ask(1, "gathering");
  const answers = [1, 2, 3, 4, 5].map(() => call(server, "predict", [request]));
  await settled();
  gate.resolve();
  assertEquals((await Promise.all(answers)).map(({ code }) => code), Array(5).fill("ok"));
  assertEquals(sizes, [1, 4]);
  const metrics = await scrape(server);
  assertEquals(metrics.sum("tensorlet_requests_total", `kind="predict"`, `code="ok"`), 5);
  assertEquals(metrics.sum("tensorlet_queue_duration_seconds_count", `kind="predict"`), 5);
  assertEquals(metrics.sum("tensorlet_batch_size_count"), 1);
  assertEquals(metrics.sum("tensorlet_batch_size_bucket", `le="2"`), 0);
  assertEquals(metrics.sum("tensorlet_batch_size_bucket", `le="4"`), 1);
});

Deno.test("/metrics counts what fails over HTTP before it calls a function, under the name of the protocol", async () => {
  const ownProtocol: ProtocolAdapter = ({ invoke, catalog }) => ({
    http: [{
      method: "GET",
      path: "/call/:model",
      async handle(_request, http) {
        const entry = findEntry(catalog, http.params.model!, "predict", "model");
        for await (const _ of invoke({ ...callBase(http, entry, {}), kind: "predict", input: {} }));
        return new Response("done");
      },
    }],
  });
  await using server = await createTestServer({ empty: defineModel({ predict: () => [] }) }, {
    adapters: [ownProtocol, metrics],
  });
  const get = async (path: string) => (await server.fetch(new Request(`http://localhost${path}`))).status;
  assertEquals([await get("/call/empty"), await get("/call/other"), await get("/call/another")], [200, 404, 404]);
  assertEquals([...(await scrape(server)).of("tensorlet_requests_total")], [
    [`kind="predict",model="empty",version="1",protocol="own_protocol",code="ok"`, 1],
    [`kind="",model="",version="",protocol="own_protocol",code="not_found"`, 2],
  ]);
});
