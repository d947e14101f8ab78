import { assertEquals } from "tensorlet/assert";
import { recordLog } from "../../test/harness/calls.ts";
import { createLogger, LOG_LEVELS, type LogRecord, withFields } from "./log.ts";

Deno.test("createLogger() writes every level with its fields", () => {
  const { log, records } = recordLog();
  for (const level of LOG_LEVELS) log[level]("said", { level });
  assertEquals(records, LOG_LEVELS.map((level) => ({ level, message: "said", fields: { level } })));
});

Deno.test("withFields() adds fields, which a record's override", () => {
  const records: LogRecord[] = [];
  const log = withFields(createLogger((record) => records.push(record)), { a: 1, b: 1 });
  log.info("x", { b: 2 });
  log.info("y");
  assertEquals(records.map(({ fields }) => fields), [{ a: 1, b: 2 }, { a: 1, b: 1 }]);
});

Deno.test("withFields() adds fields on top of others", () => {
  const { log, records } = recordLog();
  withFields(withFields(log, { model: "m" }), { requestId: "r" }).warn("x", { more: true });
  assertEquals(records, [{ level: "warn", message: "x", fields: { model: "m", requestId: "r", more: true } }]);
});

Deno.test("createLogger() writes nothing below its least level, nor does what derives from it", () => {
  const messages: string[] = [];
  const log = createLogger(({ message }) => messages.push(message), "warn");
  for (const level of LOG_LEVELS) withFields(log, { model: "m" })[level](level);
  assertEquals(messages, ["warn", "error"]);
});
