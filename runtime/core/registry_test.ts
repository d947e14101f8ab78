import { assert, assertEquals, assertRejects, assertStrictEquals, assertThrows } from "tensorlet/assert";
import { assertFails, collect, predictCall, recordLog, SILENT } from "../../test/harness/calls.ts";
import { FakeClock } from "../../test/harness/clock.ts";
import type { LoadContext } from "./context.ts";
import { type AnyModel, defineModel, resolveModel } from "./define.ts";
import { type RegistrationOptions, Registry } from "./registry.ts";
import { tensor } from "./tensor.ts";

const EMPTY = defineModel({ predict: () => [] });

function registryOf(models: Record<string, AnyModel>, options: RegistrationOptions = {}, log = SILENT): Registry {
  const registry = new Registry(log);
  for (const [name, model] of Object.entries(models)) registry.add(resolveModel(model, name), options);
  return registry;
}

async function predict(registry: Registry, model: string, signal?: AbortSignal): Promise<unknown> {
  const [reply] = await collect(registry.invoke(predictCall({ model, ...signal && { signal } })));
  return reply?.type === "tensors" ? reply.output["0"]?.data[0] : undefined;
}

// A model that answers how often it was loaded.
function counting(load: (times: number) => Promise<void> = () => Promise.resolve()) {
  let times = 0;
  return defineModel({
    async load() {
      await load(++times);
      return times;
    },
    predict: (_, ctx) => tensor("int32", [ctx.model]),
  });
}

Deno.test("Registry.list() goes by name, the newest version first", () => {
  const registry = new Registry(SILENT);
  for (const [name, version] of [["b", "1"], ["a", "9"], ["a", "10"], ["a", "2"]] as const) {
    registry.add(resolveModel(EMPTY, name, version));
  }
  assertEquals([...registry.list()].map(({ name, version }) => `${name}@${version}`), ["a@10", "a@9", "a@2", "b@1"]);
  assertEquals(registry.get("a")?.version, "10");
  assertEquals(registry.get("a", "2")?.version, "2");
  assertEquals([registry.get("a", "3"), registry.get("c")], [undefined, undefined]);
});

Deno.test("Registry.add() refuses a name and version that is taken", () => {
  const registry = registryOf({ a: EMPTY });
  assertThrows(() => registry.add(resolveModel(EMPTY, "a")), RangeError, 'function "a" version "1": there is one');
});

Deno.test("Registry.addFailed() lets callers know of a function that cannot be read", async () => {
  const registry = new Registry(SILENT);
  registry.addFailed("broken", "1");
  assertEquals(registry.get("broken")?.state, "failed");
  await assertFails("unavailable", 'Function "broken" cannot be loaded', () => predict(registry, "broken"));
  await assertFails("not_found", 'no model "broken"', () => registry.modelOf("broken", undefined));
});

Deno.test("Registry.modelOf() gives the definition, or says that there is none", async () => {
  const registry = registryOf({ a: EMPTY });
  assertEquals(registry.modelOf("a", undefined).name, "a");
  await assertFails("not_found", 'There is no model "b"', () => registry.modelOf("b", undefined));
  await assertFails("not_found", 'There is no model "b"', () => registry.invoke(predictCall({ model: "b" })));
});

Deno.test("Registry.invoke() loads once for concurrent first calls", async () => {
  const gate = Promise.withResolvers<void>();
  const registry = registryOf({ a: counting(() => gate.promise) });
  assertEquals(registry.get("a")?.state, "registered");
  const calls = [predict(registry, "a"), predict(registry, "a")];
  assertEquals(registry.get("a")?.state, "loading");
  gate.resolve();
  assertEquals(await Promise.all([...calls, predict(registry, "a")]), [1, 1, 1]);
  assertEquals(registry.get("a")?.state, "ready");
  assertEquals(await predict(registry, "a"), 1);
});

Deno.test("Registry.invoke() does not make a cancelled call wait for the load, which goes on", async () => {
  const gate = Promise.withResolvers<void>();
  const registry = registryOf({ a: counting(() => gate.promise) });
  const controller = new AbortController();
  const cancelled = predict(registry, "a", controller.signal);
  const patient = predict(registry, "a");
  controller.abort();
  await assertFails("cancelled", "", () => cancelled);
  gate.resolve();
  assertEquals(await patient, 1);
});

Deno.test("Registry.invoke() answers unavailable when the load fails, and tries again later", async () => {
  using clock = new FakeClock();
  const { log, records } = recordLog();
  const failing = counting((times) => times < 3 ? Promise.reject(new Error("no weights")) : Promise.resolve());
  const registry = registryOf({ a: failing }, {}, log);
  const error = await assertFails("unavailable", 'Function "a" cannot be loaded', () => predict(registry, "a"));
  assertEquals([error.details, `${error.cause}`], [{ retryAfterMs: 1000 }, "Error: no weights"]);
  assertEquals(registry.get("a")?.state, "failed");
  const [record] = records.filter(({ level }) => level === "error");
  assertEquals([record?.fields.model, record?.fields.retryMs], ["a", 1000]);
  assertStrictEquals((record?.fields.cause as Error).message, "no weights");

  await clock.advance(400);
  const early = await assertFails("unavailable", "cannot be loaded", () => predict(registry, "a"));
  assertEquals(early.details, { retryAfterMs: 600 });
  await clock.advance(600);
  const again = await assertFails("unavailable", "cannot be loaded", () => predict(registry, "a"));
  assertEquals(again.details, { retryAfterMs: 2000 }); // it did try: the pause doubles
  await clock.advance(2000);
  assertEquals(await predict(registry, "a"), 3);
  assertEquals(registry.get("a")?.state, "ready");
});

Deno.test("Registry.invoke() never pauses longer than a minute between loads", async () => {
  using clock = new FakeClock();
  const registry = registryOf({ a: counting(() => Promise.reject(new Error("no"))) });
  for (let i = 0; i < 10; i++) {
    await predict(registry, "a").catch(() => {});
    await clock.advance(60_000);
  }
  const error = await assertFails("unavailable", "", () => predict(registry, "a"));
  assertEquals(error.details, { retryAfterMs: 60_000 });
});

Deno.test("Registry.invoke() uses what was given instead of running load", async () => {
  const registry = registryOf({ a: counting() }, { loaded: { value: 42 } });
  assertEquals(await predict(registry, "a"), 42);
});

Deno.test("Registry gives load its name, a signal, a log and its assets", async () => {
  const { log, records } = recordLog();
  let context: LoadContext | undefined;
  const model = defineModel({
    load(ctx) {
      context = ctx;
      ctx.log.info("Loading");
    },
    predict: () => [],
  });
  const registry = registryOf({ a: model }, { base: new URL("file:///functions/a/mod.ts") }, log);
  await predict(registry, "a");
  assertEquals(context?.name, "a");
  assertEquals(context?.asset("w/weights.bin").href, "file:///functions/a/w/weights.bin");
  assertEquals(records[0], { level: "info", message: "Loading", fields: { model: "a" } });
  assert(!context?.signal.aborted);
  await registry.unloadAll();
  assert(context?.signal.aborted);
});

Deno.test("Registry says when a function without a file asks for an asset", async () => {
  const { log, records } = recordLog();
  const model = defineModel({ load: (ctx) => ctx.asset("x"), predict: () => [] });
  await assertRejects(() => predict(registryOf({ a: model }, {}, log), "a"));
  assertEquals(`${records[0]?.fields.cause}`, "TypeError: Cannot resolve an asset: the function has no file");
});

Deno.test("Registry.loadWarm() loads the warm functions only, and survives one that fails", async () => {
  const registry = new Registry(SILENT);
  registry.add(resolveModel(counting(), "cold"));
  registry.add(resolveModel(counting(), "warm"), { warm: true });
  registry.add(resolveModel(counting(() => Promise.reject(new Error("no"))), "sick"), { warm: true });
  await registry.loadWarm();
  const states = Object.fromEntries([...registry.list()].map(({ name, state }) => [name, state]));
  assertEquals(states, { cold: "registered", sick: "failed", warm: "ready" });
  assertEquals([...registry.list()].map((entry) => registry.isWarm(entry)), [false, true, true]);
  await registry.unloadAll();
});

Deno.test("Registry.loadWarm() tries a warm function that failed again by itself: health keeps calls away", async () => {
  using clock = new FakeClock();
  const registry = new Registry(SILENT);
  const flaky = counting((times) => times < 3 ? Promise.reject(new Error("not yet")) : Promise.resolve());
  registry.add(resolveModel(flaky, "flaky"), { warm: true });
  await registry.loadWarm();
  await clock.advance(1000);
  assertEquals(registry.get("flaky")?.state, "failed");
  await clock.advance(2000);
  assertEquals([registry.get("flaky")?.state, clock.armed], ["ready", 0]);
});

Deno.test("Registry.onChange() tells of every state until it is taken back", async () => {
  const registry = registryOf({ a: counting() });
  const seen: string[] = [];
  const takeBack = registry.onChange(() => seen.push(registry.get("a")!.state));
  await predict(registry, "a");
  takeBack();
  await registry.unloadAll();
  assertEquals(seen, ["loading", "ready"]);
});

Deno.test("Registry.endSession() runs the function's close with a copy of the session", async () => {
  const closed: unknown[] = [];
  const talker = defineModel({
    chat: async function* () {},
    close: (session, reason) => void closed.push(session, reason),
  });
  const registry = registryOf({ talker, mute: EMPTY });
  const snapshot = { id: "s", turn: 1, history: [], state: { n: 1 } };
  await registry.endSession("talker", "1", snapshot, "evicted");
  assertEquals(closed, [snapshot, "evicted"]);
  await registry.endSession("mute", undefined, snapshot, "idle");
  await registry.endSession("gone", undefined, snapshot, "idle");
});

// Functions that say what is unloaded.
function unloading(order: string[], name: string): AnyModel {
  return defineModel({ load: () => name, unload: (model) => void order.push(model), predict: () => [] });
}

Deno.test("Registry.unloadAll() unloads what is loaded, the last registered first", async () => {
  const order: string[] = [];
  const names = ["b", "c", "a", "d"];
  const registry = registryOf(Object.fromEntries(names.map((name) => [name, unloading(order, name)])));
  for (const name of ["a", "b", "c"]) await predict(registry, name);
  await registry.unloadAll();
  assertEquals(order, ["a", "c", "b"]);
  assertEquals([registry.get("a")?.state, registry.get("d")?.state], ["unloaded", "registered"]);
});

Deno.test("Registry.unloadAll() goes on when an unload fails, and logs it", async () => {
  const { log, records } = recordLog();
  const order: string[] = [];
  const sick = defineModel({ unload: () => Promise.reject(new Error("stuck")), predict: () => [] });
  const registry = registryOf({ a: unloading(order, "a"), sick }, {}, log);
  for (const name of ["a", "sick"]) await predict(registry, name);
  await registry.unloadAll();
  assertEquals(order, ["a"]);
  assertEquals(records.filter(({ level }) => level === "error").map(({ message }) => message), [
    "Cannot unload the function",
  ]);
});

Deno.test("Registry.unloadAll() waits for a load in progress, unloads it, and lets nothing load after", async () => {
  const gate = Promise.withResolvers<void>();
  const unloaded: number[] = [];
  const model = defineModel({
    load: () => gate.promise.then(() => 7),
    unload: (loaded) => void unloaded.push(loaded),
    predict: () => [],
  });
  const registry = registryOf({ a: model });
  const call = predict(registry, "a");
  const ending = registry.unloadAll();
  gate.resolve();
  await Promise.all([call, ending]);
  assertEquals(unloaded, [7]);
  await assertFails("unavailable", "The server is shutting down", () => predict(registry, "a"));
});
