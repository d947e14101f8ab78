import {
  assert,
  assertEquals,
  assertFalse,
  assertInstanceOf,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "tensorlet/assert";
import { assertFails, collect, predictCall } from "../../test/harness/calls.ts";
import { FakeClock, settled } from "../../test/harness/clock.ts";
import { openFunction, openModule, startFunction } from "../../test/harness/ports.ts";
import type { LoadContext } from "../core/context.ts";
import { defineModel, describeModel, type ModelDescription, resolveModel } from "../core/define.ts";
import { ModelError } from "../core/error.ts";
import { crashOf } from "./runner.ts";

const stuck = () => new Promise<never>(() => {});
const SNAPSHOT = { id: "s", turn: 2, history: [], state: { n: 1 } };

Deno.test("startRemote() loads the function, and knows before what it is", async () => {
  const steps: unknown[] = [];
  const gate = Promise.withResolvers<void>();
  let context: LoadContext | undefined;
  const definition = defineModel({
    description: "Echoes",
    async load(ctx) {
      context = ctx;
      await gate.promise;
      steps.push("loaded");
    },
    predict: () => [],
  });
  const { ports, started } = openFunction(definition, {
    version: "3",
    onDescribed: (description) => steps.push(description),
  });
  await settled();
  const expected: ModelDescription = describeModel(resolveModel(definition, "model", "3"));
  assertEquals(steps, [expected]);
  gate.resolve();
  const instance = await started;
  assertEquals([steps[1], instance.isolated], ["loaded", true]);
  assertEquals([context?.name, context?.asset("w.bin").href], ["model", "file:///functions/w.bin"]);
  assertEquals(ports.fromInstance.map(({ type }) => type), ["described", "loaded"]);
});

Deno.test("startRemote() rejects with what the file or its load threw, and ends the instance", async () => {
  const failing = (load: () => unknown) => ({ default: defineModel({ load, predict: () => [] }) });
  const cases: [Parameters<typeof openModule>[0], string][] = [
    [Promise.reject(new SyntaxError("Unexpected token")), "SyntaxError: Unexpected token"],
    [{}, "TypeError: Cannot serve the file: its default export is missing"],
    [{ default: 1 }, "TypeError: Cannot serve the file: its default export is not what defineModel({...}) returns"],
    [failing(() => Promise.reject(new Error("no weights"))), "Error: no weights"],
    [failing(() => Promise.reject(new ModelError("unavailable", "later"))), "ModelError: later"],
    [failing(() => Promise.reject("text")), "Error: text"],
  ];
  for (const [module, text] of cases) {
    const { ports, started } = openModule(module);
    const error = await assertRejects(() => started);
    assertEquals([`${error}`, ports.terminations], [text, [false]]);
    assertStringIncludes(error.stack ?? "", text); // in the worker, where there is one
  }
});

Deno.test("startRemote() refuses an instance of something else", async () => {
  const { ports, started } = openFunction(defineModel({ predict: () => [] }), {
    onDescribed() {
      throw new Error("the file has changed");
    },
  });
  await assertRejects(() => started, Error, "the file has changed");
  assertEquals(ports.terminations, [false]);
});

Deno.test("startRemote() explains what the function threw", async () => {
  const explain = (error: ModelError) => new ModelError(error.code, error.message, { cause: "grant it net" });
  const failing = defineModel({ load: () => Promise.reject(new Error("denied")), predict: () => [] });
  const { started } = openFunction(failing, { explain });
  assertEquals(await started.catch((error) => error), "grant it net");
  const { started: running } = openFunction(
    defineModel({ predict: () => Promise.reject(new Error("denied")) }),
    { explain },
  );
  const error = await collect((await running).run(predictCall()).replies).catch((error) => error);
  assertEquals([error.code, error.cause], ["internal", "grant it net"]);
});

Deno.test("startRemote() tells a load of the abort, which it may end by", async () => {
  const controller = new AbortController();
  let signal: AbortSignal | undefined;
  const obedient = defineModel({
    load: (ctx) =>
      new Promise((_, reject) => {
        signal = ctx.signal;
        ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason), { once: true });
      }),
    predict: () => [],
  });
  const { ports, started } = openFunction(obedient, { signal: controller.signal });
  await settled();
  controller.abort(new ModelError("unavailable", "It took too long"));
  await assertRejects(() => started, ModelError, "It took too long");
  assertEquals([signal?.reason.message, ports.terminations], ["It took too long", [true]]);
});

Deno.test("startRemote() ends an instance whose load ignores the abort, or whose file is never read", async () => {
  for (const module of [{ default: defineModel({ load: stuck, predict: () => [] }) }, stuck()]) {
    using clock = new FakeClock();
    const controller = new AbortController();
    const { ports, started } = openModule(module, { signal: controller.signal });
    await settled();
    controller.abort(new ModelError("unavailable", "It took too long"));
    await clock.advance(999);
    assertEquals(ports.terminations, []);
    await clock.advance(1);
    await assertRejects(() => started, ModelError, "It took too long");
    assertEquals([ports.terminations, clock.armed], [[true], 0]);
  }
});

Deno.test("startRemote() gives an instance whose load succeeds in spite of the abort, for the caller to end", async () => {
  using clock = new FakeClock();
  const gate = Promise.withResolvers<void>();
  const controller = new AbortController();
  const slow = defineModel({ load: () => gate.promise, predict: () => [] });
  const { ports, started } = openFunction(slow, { signal: controller.signal });
  await settled();
  controller.abort();
  gate.resolve();
  await (await started).close(100);
  assertEquals([ports.terminations, clock.armed], [[false], 0]);
});

Deno.test("startRemote() fails when the instance goes before it is loaded", async () => {
  const { ports, started } = openFunction(defineModel({ load: stuck, predict: () => [] }));
  await settled();
  ports.server.onGone(new ModelError("unavailable", "An instance failed to start"));
  await assertRejects(() => started, ModelError, "An instance failed to start");
});

/** An instance with a call in it that does not end. */
async function withCall() {
  const remote = await startFunction({ predict: stuck, chat: async function* () {}, close: stuck });
  const run = remote.instance.run(predictCall());
  const outcome = collect(run.replies).catch((error) => error);
  const order: string[] = [];
  remote.instance.ended.then(() => order.push("ended"));
  run.settled.then(() => order.push("settled"));
  await settled();
  return { ...remote, run, outcome, order };
}

Deno.test("Instance.ended resolves with what its calls got when something in it fails that no call waits for", async () => {
  const { instance, ports, outcome, order } = await withCall();
  ports.instance.post(crashOf(new RangeError("stray")));
  const error = await outcome;
  assertInstanceOf(error, ModelError);
  assertEquals([error.code, error.message, error.details, `${error.cause}`], [
    "unavailable",
    'An instance of function "model" crashed',
    { retryAfterMs: 100 },
    "RangeError: stray",
  ]);
  assert(await instance.ended === error);
  assertEquals([ports.terminations, order], [[false], ["ended", "settled"]]); // in this order: see Pool
});

Deno.test("Instance.ended resolves when the instance ends itself, or its port says that it is gone", async () => {
  const exited = await withCall();
  exited.ports.instance.post({ type: "exiting" });
  assertEquals((await exited.outcome).message, 'An instance of function "model" ended itself');
  assertEquals((await exited.instance.ended)?.code, "unavailable");
  const gone = await withCall();
  const why = new ModelError("resource_exhausted", "It is out of memory");
  gone.ports.server.onGone(why);
  gone.ports.server.onGone(new ModelError("unavailable", "again"));
  assert(await gone.outcome === why && await gone.instance.ended === why);
});

Deno.test("Instance ends when it sends what is no message of ours", async () => {
  const junk = [
    null,
    undefined,
    { type: "reply", id: 1 },
    { type: "reply", id: 1, reply: { type: "tensors", output: null } },
    { type: "end", id: 1, error: { code: "nonsense", message: "" } },
    { type: "log", level: "shout", message: "", fields: {} },
    { type: "crashed" },
  ];
  for (const message of junk) {
    const { instance, ports, outcome } = await withCall();
    ports.instance.post(message as never);
    const error = await outcome;
    assertEquals([error.code, error.message], [
      "unavailable",
      'An instance of function "model" sent a message that cannot be read',
    ]);
    assertEquals([await instance.ended, ports.terminations], [error, [false]]);
  }
  const { ports, instance } = await withCall();
  for (
    const message of [1, {}, { type: "hello" }, { type: "settled", id: 9 }, { type: "reply", id: 9, reply: null }]
  ) {
    ports.instance.post(message as never);
  }
  await settled();
  assertEquals([await instance.responds(1000), ports.terminations], [true, []]); // tells us nothing
});

Deno.test("Instance.kill() fails its calls with the reason, and takes no more", async () => {
  const { instance, ports, outcome } = await withCall();
  const reason = new ModelError("unavailable", "It ignored an abort");
  const ending = assertFails("unavailable", "It ignored an abort", () => instance.endSession(SNAPSHOT, "idle"));
  instance.kill(reason);
  instance.kill(new ModelError("internal", "again"));
  assert(await outcome === reason && await instance.ended === reason);
  await ending;
  assertEquals(ports.terminations, [false]);
  assertThrows(() => instance.run(predictCall()), ModelError, "It ignored an abort");
  await assertFails("unavailable", "It ignored an abort", () => instance.endSession(SNAPSHOT, "idle"));
  await instance.close(1000); // nothing to wait for
});

Deno.test("Instance.responds() tells whether the event loop answers in time, and the end whether it did not", async () => {
  using clock = new FakeClock();
  const { instance, ports } = await withCall();
  assertEquals(await instance.responds(1000), true);
  ports.block();
  let answer: boolean | undefined;
  instance.responds(1000).then((value) => answer = value);
  await clock.advance(999);
  assertEquals(answer, undefined);
  await clock.advance(1);
  assertEquals(answer, false);
  instance.kill(new ModelError("unavailable", "no answer"));
  assertEquals([ports.terminations, clock.armed], [[true], 0]);
});

Deno.test("Instance.responds() takes back that it did not when it does", async () => {
  using clock = new FakeClock();
  const { instance, ports } = await withCall();
  ports.block();
  const first = instance.responds(10);
  await clock.advance(10);
  ports.unblock();
  assertEquals([await first, await instance.responds(10)], [false, true]);
  instance.kill(new ModelError("unavailable", "over"));
  assertEquals(ports.terminations, [false]);
});

Deno.test("Instance.close() unloads the function and ends it", async () => {
  using clock = new FakeClock();
  const unloaded: unknown[] = [];
  const gate = Promise.withResolvers<void>();
  const { instance, ports } = await startFunction({
    load: () => ({ weights: 1 }),
    async unload(model) {
      await gate.promise;
      unloaded.push(model);
    },
    predict: () => [],
  });
  const closing = instance.close(1000);
  await settled();
  assertEquals(ports.terminations, []);
  gate.resolve();
  await closing;
  assertEquals([unloaded, ports.terminations, clock.armed], [[{ weights: 1 }], [false], 0]);
  assertEquals(await instance.ended, undefined);
  assertThrows(() => instance.run(predictCall()), ModelError, 'The instance of function "model" has ended');
});

Deno.test("Instance.close() rejects with what the unload threw, ended all the same", async () => {
  const { instance, ports } = await startFunction({
    unload: () => Promise.reject(new Error("stuck")),
    predict: () => [],
  });
  const error = await assertRejects(() => instance.close(1000), ModelError);
  assertEquals([`${error.cause}`, ports.terminations, await instance.ended], ["Error: stuck", [false], undefined]);
});

Deno.test("Instance.close() waits for an unload for the grace time, and for one that answers nothing", async () => {
  for (const blocked of [false, true]) {
    using clock = new FakeClock();
    const { instance, ports } = await startFunction({ unload: stuck, predict: () => [] });
    if (blocked) ports.block();
    let isClosed = false;
    const closing = instance.close(500).then(() => isClosed = true);
    await clock.advance(499);
    assertFalse(isClosed);
    await clock.advance(1);
    await closing;
    assertEquals(ports.terminations, [true]);
  }
});

Deno.test("Instance.close() gives calls that are left an end", async () => {
  const { instance, outcome } = await withCall();
  await instance.close(1000);
  assertEquals([(await outcome).code, await instance.ended], ["unavailable", undefined]);
});

Deno.test("Instance.endSession() runs the function's close and waits for it", async () => {
  const gate = Promise.withResolvers<void>();
  const closed: unknown[] = [];
  const { instance } = await startFunction({
    chat: async function* () {},
    async close(session, reason) {
      await gate.promise;
      closed.push(session, reason);
      if (reason === "evicted") throw new Error("cannot archive");
    },
  });
  let isDone = false;
  const ending = instance.endSession(SNAPSHOT, "idle").then(() => isDone = true);
  await settled();
  assertFalse(isDone);
  gate.resolve();
  await ending;
  assertEquals(closed, [SNAPSHOT, "idle"]);
  const error = await assertRejects(() => instance.endSession(SNAPSHOT, "evicted"), ModelError);
  assertEquals(`${error.cause}`, "Error: cannot archive");
});

Deno.test("Instance hands on what the function logs, as far as a message can carry it", async () => {
  const { instance, records } = await startFunction({
    load: (ctx) => ctx.log.debug("loading", { file: "weights.bin" }),
    predict(_, ctx) {
      const cyclic: Record<string, unknown> = {};
      cyclic.self = cyclic;
      ctx.log.info("plain", { n: 1n, list: [1, { a: 2 }], bytes: Uint8Array.of(1) });
      ctx.log.warn("odd", { action: function onDone() {}, symbol: Symbol("s"), cyclic, left: "as it is" });
      ctx.log.error("failed", { cause: new RangeError("too far") });
      ctx.log.info("worse", { bare: Object.assign(Object.create(null), { call() {} }) });
      return [];
    },
  });
  await collect(instance.run(predictCall({ id: "r-1" })).replies);
  const [loading, plain, odd, failed, worse] = records;
  assertEquals(loading, { level: "debug", message: "loading", fields: { file: "weights.bin" } });
  assertEquals(plain, {
    level: "info",
    message: "plain",
    fields: { requestId: "r-1", n: 1n, list: [1, { a: 2 }], bytes: Uint8Array.of(1) },
  });
  const { cyclic, ...rest } = odd!.fields;
  assertEquals([odd?.level, rest], [
    "warn",
    { requestId: "r-1", action: "function onDone", symbol: "Symbol(s)", left: "as it is" },
  ]);
  assert((cyclic as { self: unknown }).self === cyclic);
  assertStringIncludes(`${failed!.fields.cause}`, "RangeError: too far\n    at ");
  assertEquals(worse?.fields, { requestId: "r-1", bare: "(a value without a text)" });
});
