// Spans as a collector gets them, and log lines that name them, from a server with functions at every level.
import { createClient, tensor } from "tensorlet/client";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "tensorlet/assert";
import { Collector, type ExportedSpan } from "../harness/collector.ts";
import { DenoProcess, functionFolder, MAIN } from "../harness/server_process.ts";

const LEVELS = ["inline", "worker", "process"] as const;

// Every handler answers with the trace context that it is given.
const TELLER = `defineModel({
  predict: (_inputs, ctx) => [{ dtype: "string", shape: [1], data: [ctx.metadata.get("traceparent") ?? ""] }],
  batch: (items) => items.map(() => [{ dtype: "float32", shape: [1], data: new Float32Array(1) }]),
  async *stream(_inputs, ctx) { yield ctx.metadata.get("traceparent") ?? ""; },
  async *chat(_message, ctx) { yield ctx.metadata.get("traceparent") ?? ""; },
})`;

const FETCHER = `defineModel({
  async predict(_inputs, ctx) {
    const response = await fetch(ctx.metadata.get("url"));
    return [{ dtype: "string", shape: [1], data: [await response.text()] }];
  },
})`;

// The calls that run as one answer with the context that a request carries which is made for all of them.
const GATHERER = `defineModel({
  batching: { maxSize: 3, maxDelayMs: 10_000 },
  params: { url: { type: "string" } },
  async batch(items) {
    const text = await (await fetch(items[0].params.url)).text();
    return items.map(() => [{ dtype: "string", shape: [1], data: [text] }]);
  },
})`;

const FAILING = `defineModel({ predict: () => { throw new Error("a secret"); } })`;

/** A traced server, its client's trace contexts, and what it has exported in the end. */
async function startTraced(collector: Collector) {
  const folder = await functionFolder({
    ...Object.fromEntries(LEVELS.map((level) => [level, TELLER])),
    ...Object.fromEntries(LEVELS.map((level) => [`${level}_fetcher`, FETCHER])),
    gatherer: GATHERER,
    failing: FAILING,
  });
  const net = { net: [new URL(collector.url).host] };
  const settings = Object.fromEntries(LEVELS.flatMap((isolation) => [
    [isolation, { isolation }],
    [`${isolation}_fetcher`, { isolation, ...isolation !== "inline" && { permissions: { ...net, env: ["OTEL_*"] } } }],
  ]));
  Object.assign(settings, { gatherer: { permissions: net } });
  await Deno.writeTextFile(`${folder.path}/functions.json`, JSON.stringify(settings));
  const server = new DenoProcess(
    [...MAIN, folder.path, "--port", "0", "--access-log", "--log-format", "json"],
    collector.env,
  );
  const [, port] = await server.stderr.find(/"serving","address":"grpc:\/\/127\.0\.0\.1:(\d+)"/);
  return {
    address: `127.0.0.1:${port}`,
    /** What it has logged; all spans are exported by then. */
    async stop(): Promise<Readonly<Record<string, unknown>>[]> {
      Deno.kill(server.pid, "SIGTERM");
      const { code, stderr } = await server.result();
      assertEquals(code, 0);
      return stderr.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** A client's span: the context that it sends, and its ids. */
function clientSpan(number: number) {
  const traceId = `${number}`.padStart(32, "a");
  const spanId = `${number}`.padStart(16, "b");
  return { traceId, spanId, metadata: { traceparent: `00-${traceId}-${spanId}-01` } };
}

/** The names from a span up to its root, "client" for what the server did not make. */
function lineage(spans: readonly ExportedSpan[], span: ExportedSpan | undefined): string {
  if (!span) return "client";
  if (span.parentSpanId === "") return span.name;
  const parent = spans.find(({ spanId }) => spanId === span.parentSpanId);
  return `${span.name} < ${lineage(spans, parent)}`;
}

function only<T>(all: readonly T[]): T {
  assertEquals(all.length, 1);
  return all[0]!;
}

Deno.test("traces: a call of each mode at each level continues its client's, and hands its own on", async () => {
  await using collector = new Collector();
  await using server = await startTraced(collector);
  const calls: { name: string; method: string; trace: ReturnType<typeof clientSpan>; told: string | undefined }[] = [];
  for (const level of LEVELS) {
    await using client = createClient(server.address, { model: level });
    const call = async (method: string, run: (options: { metadata: Record<string, string> }) => Promise<unknown>) => {
      const trace = clientSpan(calls.length + 1);
      calls.push({ name: level, method, trace, told: await run({ metadata: trace.metadata }) as string | undefined });
    };
    await call("inference.InferenceService/Predict", async (options) => {
      return (await client.predict([], options)).outputs[0]!.data[0];
    });
    await call("inference.v1.ModelInference/StreamPredict", async (options) => {
      return (await Array.fromAsync(client.stream([], options))).join("");
    });
    await call("inference.v1.ModelInference/BatchPredict", async (options) => {
      await client.batch([[1], [2]], options);
    });
    await call("inference.v1.ModelInference/ChatStream", async (options) => {
      await using chat = client.chat(options);
      return (await Array.fromAsync(chat.send("hello"))).join("");
    });
  }
  const log = await server.stop();
  for (const { name, method, trace, told } of calls) {
    const spans = collector.spans.filter(({ traceId }) => traceId === trace.traceId);
    const span = only(spans.filter((each) => each.name === method));
    assertEquals(lineage(spans, span), `${method} < POST < client`);
    assertEquals(only(spans.filter((each) => each.name === "POST")).parentSpanId, trace.spanId);
    assertEquals([span.scope, span.attributes["tensorlet.model.name"], span.status.code], ["tensorlet", name, 0]);
    assertEquals(span.attributes["rpc.grpc.status_code"], 0);
    const handler = only(spans.filter((each) => each.name === "handler"));
    assertEquals(lineage(spans, handler), `handler < ${method} < POST < client`);
    // The first call of a function waits until it is loaded.
    const isFirst = method.endsWith("Service/Predict");
    assertEquals(spans.filter((each) => each.name === "load").length, isFirst ? 1 : 0);
    assertEquals(spans.some((each) => each.name === "queue"), isFirst);
    if (told !== undefined) assertEquals(told, `00-${trace.traceId}-${span.spanId}-01`);
    const line = only(log.filter((each) => each.message === "call" && each.trace_id === trace.traceId));
    assertEquals([line.span_id, line.method, line.model, line.code], [span.spanId, method, name, "ok"]);
    assertEquals([line.level, line.transport, typeof line.queueMs], ["info", "grpc", "number"]);
    assertStringIncludes(`${line.peer}`, "127.0.0.1:");
  }
});

Deno.test("traces: what a handler fetches continues its call's, and a bad context is none", async () => {
  await using collector = new Collector();
  await using server = await startTraced(collector);
  const url = `${collector.url}/traceparent`;
  const fetched = async (model: string, metadata: Readonly<Record<string, string>>) => {
    await using client = createClient(server.address, { model });
    return (await client.predict([], { metadata: { url, ...metadata } })).outputs[0]!.data[0] as string;
  };
  for (const [i, level] of LEVELS.entries()) {
    const { metadata, traceId } = clientSpan(i);
    assertStringIncludes(await fetched(`${level}_fetcher`, metadata), traceId, level);
  }
  for (const traceparent of ["00-xyz-1-01", `00-${"0".repeat(32)}-${"b".repeat(16)}-01`, "junk"]) {
    const [, traceId] = /^00-([0-9a-f]{32})-[0-9a-f]{16}-01$/.exec(await fetched("inline_fetcher", { traceparent }))!;
    assert(traceId !== "0".repeat(32));
  }
  // Deno's parser of baggage throws, and the call would hang.
  const { metadata, traceId } = clientSpan(9);
  assertStringIncludes(await fetched("worker_fetcher", { ...metadata, baggage: "a=%E0%A4%A" }), traceId);
  await server.stop();
});

Deno.test("traces: a batch and its calls link to each other", async () => {
  await using collector = new Collector();
  await using server = await startTraced(collector);
  await using client = createClient(server.address, { model: "gatherer" });
  const call = async (path: string, { metadata }: ReturnType<typeof clientSpan>) => {
    const { outputs } = await client.predict(tensor("float32", [1]), {
      metadata,
      params: { url: collector.url + path },
    });
    return `${outputs[0]!.data[0]}`;
  };
  // A function that has nothing to do runs a call alone; while it does others gather.
  const alone = call("/held", clientSpan(1));
  await collector.held;
  const fetched = await Promise.all([2, 3, 4].map((number) => call("/traceparent", clientSpan(number))));
  collector.release();
  await alone;
  await server.stop();
  const batch = only(collector.spans.filter(({ name }) => name === "batch"));
  const calls = collector.spans.filter(({ name }) => name === "inference.InferenceService/Predict");
  const members = calls.filter(({ links }) => links.length > 0);
  assertEquals(batch.links.map(({ spanId }) => spanId).sort(), members.map(({ spanId }) => spanId).sort());
  assertEquals(members.map(({ links }) => only(links).spanId), [batch, batch, batch].map(({ spanId }) => spanId));
  assertEquals(batch.parentSpanId, "");
  assertEquals(batch.attributes["tensorlet.batch.size"], 3);
  for (const traceparent of fetched) assertStringIncludes(traceparent, batch.traceId);
  const handlers = collector.spans.filter(({ name }) => name === "handler");
  const parents = handlers.map((handler) => lineage(collector.spans, handler)).sort();
  assertEquals(parents, ["handler < batch", "handler < inference.InferenceService/Predict < POST < client"]);
});

Deno.test("traces: a failure is told to the operator, in span and log, and not to the client", async () => {
  await using collector = new Collector();
  await using server = await startTraced(collector);
  await using client = createClient(server.address, { model: "failing" });
  const { metadata, traceId } = clientSpan(1);
  const error = await assertRejects(() => client.predict([], { metadata }), Error);
  assertEquals(error.message.includes("secret"), false);
  const log = await server.stop();
  const spans = collector.spans.filter((span) => span.traceId === traceId);
  for (const name of ["inference.InferenceService/Predict", "handler"]) {
    const { status, events, attributes } = only(spans.filter((span) => span.name === name));
    assertEquals([status.code, attributes["error.type"]], [2, "internal"]);
    assertEquals(only(events).attributes["exception.message"], "a secret");
  }
  const line = only(log.filter((each) => each.message === "call"));
  assertEquals([line.level, line.code, line.trace_id], ["info", "internal", traceId]);
});

// A server of a program, with a route that calls a function.
const PROGRAM = `
import { defineModel, serve } from "tensorlet";
import { callBase, invokePredict } from "./runtime/protocols/adapter.ts";
const teller = ${TELLER};
const http = ({ invoke, catalog }) => ({
  http: [{
    method: "POST",
    path: "/call/:model",
    async handle(_request, context) {
      const entry = catalog.get(context.params.model);
      const call = { ...callBase(context, entry, {}), kind: "predict", input: {} };
      for await (const { "0": { data } } of invokePredict(invoke, call)) return new Response(data[0]);
    },
  }],
});
const server = await serve({ teller }, { grpc: { port: 0 }, http: { port: 0 }, adapters: [http] });
console.log("http port", server.addresses.http.port);
Deno.addSignalListener("SIGTERM", () => void server.shutdown());
await server.finished;
Deno.exit();
`;

Deno.test("traces: a call over HTTP continues its client's", async () => {
  await using collector = new Collector();
  await using server = new DenoProcess(["eval", PROGRAM], collector.env);
  const [, port] = await server.stdout.find(/http port (\d+)/);
  const { traceId, spanId, metadata } = clientSpan(1);
  const response = await fetch(`http://127.0.0.1:${port}/call/teller`, { method: "POST", headers: metadata });
  const told = await response.text();
  Deno.kill(server.pid, "SIGTERM");
  assertEquals((await server.status).code, 0);
  const spans = collector.spans.filter((span) => span.traceId === traceId);
  const span = only(spans.filter(({ name }) => name === "POST /call/:model"));
  assertEquals(lineage(spans, span), "POST /call/:model < POST < client");
  assertEquals(only(spans.filter(({ name }) => name === "POST")).parentSpanId, spanId);
  assertEquals([span.attributes["http.route"], told], ["/call/:model", `00-${traceId}-${span.spanId}-01`]);
});
