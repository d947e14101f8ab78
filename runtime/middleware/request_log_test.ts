import { assertEquals, assertStrictEquals } from "tensorlet/assert";
import {
  assertFails,
  batchCall,
  batchItem,
  chatCall,
  collect,
  floats,
  predictCall,
  recordLog,
} from "../../test/harness/calls.ts";
import type { Invoke, Reply } from "../core/call.ts";
import { ModelError } from "../core/error.ts";
import type { LogRecord } from "../core/log.ts";
import { logRefused, requestLog } from "./request_log.ts";

const reply: Reply = { type: "delta", index: 0, text: "a" };

function logged(next: Invoke, accessLog = false) {
  const { log, records } = recordLog();
  const metered: unknown[] = [];
  const meter = {
    onReply: ({ type }: Reply) => metered.push(type),
    onEnd: (code: string, _ms: number, error?: ModelError) => metered.push(error ? [code, error.message] : code),
  };
  return {
    invoke: requestLog({ log, accessLog, protocol: "inference", meterOf: () => meter })(next),
    records,
    metered,
  };
}

function summary({ level, message, fields }: LogRecord): unknown[] {
  return [level, message, fields.code, fields.replies];
}

Deno.test("requestLog() writes one line per call", async () => {
  const { invoke, records } = logged(async function* () {
    yield reply;
    yield reply;
  });
  assertEquals(await collect(invoke(predictCall({ id: "r", model: "m" }))), [reply, reply]);
  assertEquals(records.map(summary), [["debug", "call", "ok", 2]]);
  const { kind, model, requestId, ms } = records[0]!.fields;
  assertEquals([kind, model, requestId, typeof ms], ["predict", "m", "r", "number"]);
});

Deno.test("requestLog() says cancelled when the reader left", async () => {
  const { invoke, records } = logged(async function* () {
    for (;;) yield reply;
  });
  for await (const _ of invoke(predictCall())) break;
  assertEquals(records.map(summary), [["debug", "call", "cancelled", 1]]);
});

Deno.test("requestLog() writes the cause of an internal failure, and hides it from the caller", async () => {
  const cause = new Error("password");
  const { invoke, records } = logged(() => {
    throw cause;
  });
  const error = await assertFails("internal", "The function failed (request id r)", () => {
    return collect(invoke(predictCall({ id: "r" })));
  });
  assertEquals(error.message.includes("password"), false);
  assertEquals(records.map(summary), [
    ["error", error.message, "internal", undefined],
    ["debug", "call", "internal", 0],
  ]);
  assertStrictEquals(records[0]!.fields.cause, cause);
});

Deno.test("requestLog() writes no error for what the caller did wrong", async () => {
  const { invoke, records } = logged(() => {
    throw new ModelError("invalid_argument", "bad");
  });
  await assertFails("invalid_argument", "bad", () => collect(invoke(predictCall())));
  assertEquals(records.map(summary), [["debug", "call", "invalid_argument", 0]]);
});

Deno.test("requestLog() writes the cause of a batch item's internal failure", async () => {
  const failed = (code: "internal" | "not_found", index: number): Reply => ({
    type: "failure",
    index,
    error: new ModelError(code, code, { cause: index }),
  });
  const { invoke, records } = logged(async function* () {
    yield failed("not_found", 0);
    yield failed("internal", 1);
  });
  await collect(invoke(predictCall()));
  assertEquals(records.map(summary), [
    ["error", "internal", "internal", undefined],
    ["debug", "call", "ok", 2],
  ]);
  assertEquals(records[0]!.fields.cause, 1);
});

Deno.test("requestLog() cuts a model's name", async () => {
  const { invoke, records } = logged(async function* () {});
  await collect(invoke(predictCall({ model: "x".repeat(10_000) })));
  assertEquals(records[0]!.fields.model, "x".repeat(100));
});

Deno.test("requestLog() has each call metered: its replies, and how it ended", async () => {
  const code: { value?: "internal" | "cancelled" } = {};
  const { invoke, metered } = logged(async function* () {
    yield reply;
    if (code.value) throw new ModelError(code.value, "no");
  });
  await collect(invoke(predictCall({})));
  for await (const _ of invoke(predictCall({}))) assertEquals(metered.splice(0), ["delta", "ok", "delta"]);
  code.value = "cancelled";
  await assertFails("cancelled", "no", () => collect(invoke(predictCall({}))));
  assertEquals(metered, ["ok", "delta", ["cancelled", "no"]]);
});

Deno.test("requestLog() writes what operators ask of a call, as an access log", async () => {
  const { invoke, records } = logged(async function* (call) {
    call.trail!.queuedMs = 1.23456;
    yield reply;
  }, true);
  const origin = { transport: "grpc", method: "inference.InferenceService/Predict", peer: "127.0.0.1:5" } as const;
  const trail = { origin, span: { traceId: "t", spanId: "s" } };
  await collect(invoke(predictCall({ id: "r", model: "m", version: "2", input: floats(1, 2), trail })));
  const [{ level, message, fields }] = records as [LogRecord];
  const { ms, ...rest } = fields;
  assertEquals([level, message, typeof ms], ["info", "call", "number"]);
  assertEquals(rest, {
    kind: "predict",
    model: "m",
    version: "2",
    requestId: "r",
    protocol: "inference",
    ...origin,
    code: "ok",
    replies: 1,
    inputBytes: 8,
    queueMs: 1.235,
    trace_id: "t",
    span_id: "s",
  });
});

Deno.test("requestLog() counts a batch's items in the access log, and writes nothing that a user said", async () => {
  const { invoke, records } = logged(async function* () {}, true);
  await collect(invoke(batchCall([batchItem("a", floats(1)), batchItem("b", floats(1, 2))])));
  await collect(invoke(chatCall("my password")));
  const [batch, chat] = records as [LogRecord, LogRecord];
  assertEquals([batch.fields.items, batch.fields.inputBytes], [2, 12]);
  assertEquals(JSON.stringify(chat.fields).includes("password"), false);
});

Deno.test("logRefused() writes a line for a request that became no call", () => {
  const { log, records } = recordLog();
  const origin = { transport: "http", method: "POST /v2/models/:model/infer" } as const;
  logRefused(log, "oip", new ModelError("not_found", "There is no such model"), { id: "r", origin });
  const [{ level, fields: { requestId, code, protocol, method } }] = records as [LogRecord];
  assertEquals([level, requestId, code, protocol, method], ["info", "r", "not_found", "oip", origin.method]);
});
