import { SpanStatusCode } from "@opentelemetry/api";
import { assert, assertEquals } from "tensorlet/assert";
import { assertFails, batchCall, batchItem, collect, predictCall } from "../../test/harness/calls.ts";
import { KeepingTracer, type KeptSpan } from "../../test/harness/tracer.ts";
import type { BatchCall, Call, Invoke, PredictCall } from "../core/call.ts";
import { ModelError } from "../core/error.ts";
import { createTracing, findTracing } from "./tracing.ts";

const MODEL = { name: "model", version: "1" };
const ORIGIN = { transport: "grpc", method: "inference.InferenceService/Predict", peer: "10.0.0.1:5" } as const;

/** Calls that run as `run` tells the observer. */
function traced(run: (observer: ReturnType<typeof createTracing>["observer"], call: Call) => void) {
  const tracer = new KeepingTracer();
  const { calls, runs, observer } = createTracing(tracer);
  const executor: Invoke = async function* (call) {
    run(observer, { ...call });
    yield { type: "tensors", index: 0, output: {}, final: true };
  };
  return { tracer, observer, runs: runs(executor), invoke: calls(runs(executor)) };
}

function shapeOf({ name, parent, endMs }: KeptSpan): unknown[] {
  return [name, parent, endMs !== undefined];
}

Deno.test("tracing: a call has a span, named and attributed as the conventions say, and its handler one within", async () => {
  const { tracer, invoke } = traced((observer, call) => {
    observer.onStart!(call, MODEL, 0);
    observer.onEnd!(call, MODEL, 5, { how: "completed" });
  });
  const call = predictCall({ id: "r", version: "1", trail: { origin: ORIGIN } });
  await collect(invoke(call));
  assertEquals(tracer.spans.map(shapeOf), [[ORIGIN.method, undefined, true], ["handler", ORIGIN.method, true]]);
  assertEquals(tracer.spans[0]!.attributes, {
    "rpc.system": "grpc",
    "rpc.service": "inference.InferenceService",
    "rpc.method": "Predict",
    "network.peer.address": "10.0.0.1",
    "network.peer.port": 5,
    "tensorlet.model.name": "model",
    "tensorlet.model.version": "1",
    "tensorlet.kind": "predict",
    "tensorlet.request_id": "r",
    "rpc.grpc.status_code": 0,
  });
  const { startMs, endMs } = tracer.only("handler");
  assertEquals(Math.round(endMs! - startMs), 5);
  assertEquals(call.trail!.span!.spanId, tracer.spans[0]!.context.spanId);
});

Deno.test("tracing: a call over HTTP is named by its route", async () => {
  const { tracer, invoke } = traced(() => {});
  await collect(
    invoke(predictCall({ trail: { origin: { transport: "http", method: "POST /v2/models/:model/infer" } } })),
  );
  const { name, attributes } = tracer.spans[0]!;
  assertEquals(
    [name, attributes["http.request.method"], attributes["http.route"], "rpc.grpc.status_code" in attributes],
    ["POST /v2/models/:model/infer", "POST", "/v2/models/:model/infer", false],
  );
});

Deno.test("tracing: the server's failures are errors with their cause, a client's mistakes are not", async () => {
  const failure: { value: ModelError } = {
    value: new ModelError("internal", "It failed", { cause: new Error("why") }),
  };
  const { tracer, invoke } = traced((observer, call) => {
    observer.onStart!(call, MODEL, 0);
    throw failure.value;
  });
  const call = () => collect(invoke(predictCall({ trail: { origin: ORIGIN } })));
  await assertFails("internal", "It failed", call);
  failure.value = new ModelError("invalid_argument", "It is bad");
  await assertFails("invalid_argument", "It is bad", call);
  const ended = tracer.spans.map(({ name, status, events, attributes }) => [
    ...[name, status.code, events.join(), attributes["error.type"], attributes["rpc.grpc.status_code"]],
  ]);
  assertEquals(ended, [
    [ORIGIN.method, SpanStatusCode.ERROR, "why", "internal", 13],
    ["handler", SpanStatusCode.ERROR, "why", "internal", undefined],
    [ORIGIN.method, SpanStatusCode.UNSET, "", "invalid_argument", 3],
    ["handler", SpanStatusCode.UNSET, "", "invalid_argument", undefined],
  ]);
  assertEquals(tracer.spans[0]!.status.message, "It failed");
});

Deno.test("tracing: a reader that leaves has cancelled its call", async () => {
  const { tracer, invoke } = traced(() => {});
  for await (const _ of invoke(predictCall({ trail: { origin: ORIGIN } }))) break;
  assertEquals(tracer.spans[0]!.attributes["rpc.grpc.status_code"], 1);
  assert(tracer.spans[0]!.endMs !== undefined);
});

Deno.test("tracing: a call that waited for an instance has a span of that, and of the start that it waited for", async () => {
  const { tracer, invoke } = traced((observer, call) => {
    observer.onLoaded!(MODEL, 40, [call]);
    observer.onStart!(call, MODEL, 50);
  });
  await collect(invoke(predictCall()));
  assertEquals(tracer.spans.map(shapeOf), [
    ["predict", undefined, true],
    ["load", "predict", true],
    ["queue", "predict", true],
    ["handler", "predict", true],
  ]);
  const { startMs, endMs } = tracer.only("queue");
  assertEquals(Math.round(endMs! - startMs), 50);
});

Deno.test("tracing: a start that nobody waits for is a trace of its own, with what it failed of", () => {
  const { tracer, observer } = traced(() => {});
  observer.onLoaded!(MODEL, 40, []);
  observer.onLoadFailed!(MODEL, 40, new TypeError("no weights"), []);
  const loads = tracer.spans.map((span) => [...shapeOf(span), span.status.code, span.events.join()]);
  assertEquals(loads, [
    ["load", undefined, true, SpanStatusCode.UNSET, ""],
    ["load", undefined, true, SpanStatusCode.ERROR, "no weights"],
  ]);
  assertEquals(tracer.spans[0]!.attributes["tensorlet.model.name"], "model");
});

Deno.test("tracing: a batch is a trace of its own, which its calls link to and which links to them", async () => {
  const waiting = Promise.withResolvers<void>();
  const entered: Call[] = [];
  const tracer = new KeepingTracer();
  const { calls, runs, observer } = createTracing(tracer);
  const invoke = calls(async function* (call) {
    entered.push(call);
    await waiting.promise;
    yield { type: "tensors", index: 0, output: {} };
  });
  const members = ["a", "b"].map((id) => collect(invoke(predictCall({ id, trail: {} }))));
  const batch: BatchCall = batchCall([batchItem("a"), batchItem("b")], { gathered: true, trail: {} });
  observer.onBatch!(batch, entered as PredictCall[]);
  await collect(
    runs(async function* (call) {
      observer.onStart!(call, MODEL, 0);
      yield { type: "tensors", index: 0, output: {} };
    })(batch),
  );
  waiting.resolve();
  await Promise.all(members);

  assertEquals(tracer.spans.map(shapeOf), [
    ["predict", undefined, true],
    ["predict", undefined, true],
    ["batch", undefined, true],
    ["queue", "predict", true],
    ["queue", "predict", true],
    ["handler", "batch", true],
  ]);
  const [a, b, span] = tracer.spans as [KeptSpan, KeptSpan, KeptSpan];
  assertEquals(span.links, [a.context, b.context]);
  assertEquals([a.links, b.links], [[span.context], [span.context]]);
  assertEquals(span.attributes["tensorlet.batch.size"], 2);
});

Deno.test("findTracing() finds none where nobody exports spans", () => {
  assertEquals(findTracing(), undefined);
});
