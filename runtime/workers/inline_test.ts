import { assert, assertEquals, assertRejects, assertStrictEquals } from "tensorlet/assert";
import { assertFails, chatCall, collect, predictCall, recordLog, SILENT } from "../../test/harness/calls.ts";
import { FakeClock, settled } from "../../test/harness/clock.ts";
import type { LoadContext } from "../core/context.ts";
import { type AnyModel, defineModel, resolveModel } from "../core/define.ts";
import { tensor } from "../core/tensor.ts";
import { inlinePool } from "./inline.ts";
import type { Pool } from "./pool.ts";

const COUNTING = defineModel({
  load: () => 1,
  predict: (_, ctx) => tensor("int32", [ctx.model]),
});

function poolOf(model: AnyModel, options: Partial<Parameters<typeof inlinePool>[1]> = {}): Pool {
  return inlinePool(resolveModel(model, "model"), { log: SILENT, ...options });
}

async function predict(pool: Pool): Promise<unknown> {
  const [reply] = await collect(pool.invoke(predictCall()));
  return reply?.type === "tensors" ? reply.output["0"]?.data[0] : undefined;
}

Deno.test("inlinePool() loads the function once and runs its handlers", async () => {
  const pool = poolOf(COUNTING);
  assertEquals([pool.state, pool.warm], ["registered", true]);
  assertEquals(await Promise.all([predict(pool), predict(pool)]), [1, 1]);
  assertEquals([pool.state, poolOf(COUNTING, { warm: false }).warm], ["ready", false]);
});

Deno.test("inlinePool() has no bounds of its own on calls and idle time", async () => {
  using clock = new FakeClock();
  const gate = Promise.withResolvers<void>();
  const pool = poolOf(defineModel({ load: () => gate.promise, predict: () => gate.promise.then(() => []) }));
  const calls = Array.from({ length: 3000 }, () => predict(pool));
  await settled();
  gate.resolve();
  await Promise.all(calls);
  assertEquals([pool.status.instances, clock.armed], [1, 0]);
});

Deno.test("inlinePool() uses what was given instead of running load", async () => {
  assertEquals(await predict(poolOf(COUNTING, { loaded: { value: 42 } })), 42);
});

Deno.test("inlinePool() gives load its name, a signal, a log and its assets", async () => {
  const { log, records } = recordLog();
  let context: LoadContext | undefined;
  const model = defineModel({
    load(ctx) {
      context = ctx;
      ctx.log.info("Loading");
    },
    predict: () => [],
  });
  const pool = poolOf(model, { base: new URL("file:///functions/a/mod.ts"), log });
  await predict(pool);
  assertEquals(context?.name, "model");
  assertEquals(context?.asset("w/weights.bin").href, "file:///functions/a/w/weights.bin");
  assertEquals(records[0], { level: "info", message: "Loading", fields: { model: "model" } });
  assert(!context?.signal.aborted);
});

Deno.test("inlinePool() aborts the signal of a load in progress when it is closed", async () => {
  let signal: AbortSignal | undefined;
  const model = defineModel({
    load: (ctx) =>
      new Promise<never>((_, reject) => {
        signal = ctx.signal;
        ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason), { once: true });
      }),
    predict: () => [],
  });
  using _clock = new FakeClock();
  const pool = poolOf(model);
  const starting = assertRejects(() => pool.start());
  await pool.close();
  await starting;
  assertEquals([signal?.aborted, pool.state], [true, "unloaded"]);
});

Deno.test("inlinePool() says when a function without a file asks for an asset", async () => {
  const { log, records } = recordLog();
  const model = defineModel({ load: (ctx) => ctx.asset("x"), predict: () => [] });
  await assertFails("unavailable", "cannot be loaded", () => predict(poolOf(model, { log, warm: false })));
  assertEquals(`${records[0]?.fields.cause}`, "TypeError: Cannot resolve an asset: the function has no file");
});

Deno.test("inlinePool().close() unloads what was loaded, with it, and nothing that was not", async () => {
  const unloaded: unknown[] = [];
  const model = defineModel({ load: () => 7, unload: (loaded) => void unloaded.push(loaded), predict: () => [] });
  await poolOf(model).close();
  assertEquals(unloaded, []);
  const pool = poolOf(model);
  await predict(pool);
  await pool.close();
  assertEquals([unloaded, pool.state], [[7], "unloaded"]);
});

Deno.test("inlinePool().close() logs an unload that fails", async () => {
  const { log, records } = recordLog();
  const cause = new Error("stuck");
  const pool = poolOf(defineModel({ unload: () => Promise.reject(cause), predict: () => [] }), { log });
  await predict(pool);
  await pool.close();
  const [record] = records.filter(({ level }) => level === "error");
  assertEquals([record?.message, record?.fields.model], ["Cannot unload the function", "model"]);
  assertStrictEquals(record?.fields.cause, cause);
});

Deno.test("inlinePool().endSession() runs the function's close with a copy of the session", async () => {
  const closed: unknown[] = [];
  const pool = poolOf(defineModel({
    chat: async function* () {},
    close: (session, reason) => void closed.push(session, reason),
  }));
  await collect(pool.invoke(chatCall("x", { sessionId: "s" })));
  const snapshot = { id: "s", turn: 1, history: [], state: { n: 1 } };
  await pool.endSession(snapshot, "evicted");
  assertEquals(closed, [snapshot, "evicted"]);
  assert(closed[0] !== snapshot);
});

Deno.test("inlinePool() warns of a handler that ignores the abort of its call, and goes on with the others", async () => {
  using clock = new FakeClock();
  const { log, records } = recordLog();
  const gate = Promise.withResolvers<void>();
  const pool = poolOf(defineModel({ predict: () => gate.promise.then(() => []) }), { log });
  const controller = new AbortController();
  const call = collect(pool.invoke(predictCall({ signal: controller.signal }))).catch((error) => error.code);
  const other = predict(pool);
  await settled();
  controller.abort();
  assertEquals(await call, "cancelled");
  await clock.advance(2000);
  assertEquals(records.filter(({ level }) => level === "warn").map(({ fields }) => fields), [
    { model: "model", version: "1", graceMs: 2000 },
  ]);
  gate.resolve();
  await other;
  assertEquals([pool.status.busy, pool.state], [0, "ready"]);
});
