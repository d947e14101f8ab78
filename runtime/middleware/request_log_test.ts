import { assertEquals, assertStrictEquals } from "tensorlet/assert";
import { assertFails, collect, predictCall, recordLog } from "../../test/harness/calls.ts";
import type { Invoke, Reply } from "../core/call.ts";
import { ModelError } from "../core/error.ts";
import type { LogRecord } from "../core/log.ts";
import { requestLog } from "./request_log.ts";

const reply: Reply = { type: "delta", index: 0, text: "a" };

function logged(next: Invoke) {
  const { log, records } = recordLog();
  const metered: unknown[] = [];
  const meter = {
    onReply: ({ type }: Reply) => metered.push(type),
    onEnd: (code: string, _ms: number, error?: ModelError) => metered.push(error ? [code, error.message] : code),
  };
  return { invoke: requestLog(log, () => meter)(next), records, metered };
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
