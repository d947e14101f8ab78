import { assert, assertEquals, assertStrictEquals, assertThrows } from "tensorlet/assert";
import { assertFails, collect, predictCall, recordLog, SILENT } from "../../test/harness/calls.ts";
import { settled } from "../../test/harness/clock.ts";
import { inlinePool } from "../workers/inline.ts";
import type { PredictCall } from "./call.ts";
import type { CatalogEntry } from "./catalog.ts";
import { type AnyModel, defineModel, resolveModel } from "./define.ts";
import type { Deployment } from "./deployment.ts";
import { Registry } from "./registry.ts";
import { tensor } from "./tensor.ts";

const EMPTY = defineModel({ predict: () => [] });

interface PoolOptions {
  readonly name?: string;
  readonly version?: string;
  readonly warm?: boolean;
}

function deploymentOf(model: AnyModel, { name = "a", version = "1", warm = false }: PoolOptions = {}): Deployment {
  return inlinePool(resolveModel(model, name, version), { log: SILENT, warm });
}

function registryOf(models: Record<string, AnyModel>): Registry {
  const registry = new Registry(SILENT);
  for (const [name, model] of Object.entries(models)) registry.add(deploymentOf(model, { name }));
  return registry;
}

async function predict(registry: Registry, call: Partial<PredictCall> = {}): Promise<unknown> {
  const [reply] = await collect(registry.invoke(predictCall({ model: "a", ...call })));
  return reply?.type === "tensors" ? reply.output["0"]?.data[0] : undefined;
}

/** A function that answers with its label, once its gate is open where it has one, and tells when it is unloaded. */
function labelled(label: string, unloaded: string[] = [], gate: Promise<void> = Promise.resolve()): AnyModel {
  return defineModel({
    unload: () => void unloaded.push(label),
    async predict() {
      await gate;
      return [tensor("string", [label])];
    },
  });
}

Deno.test("Registry.list() goes by name, the newest version first", () => {
  const registry = new Registry(SILENT);
  for (const [name, version] of [["b", "1"], ["a", "9"], ["a", "10"], ["a", "2"]] as const) {
    registry.add(deploymentOf(EMPTY, { name, version }));
  }
  assertEquals([...registry.list()].map(({ name, version }) => `${name}@${version}`), ["a@10", "a@9", "a@2", "b@1"]);
  assertEquals([registry.get("a")?.version, registry.route("a")?.version], ["10", "10"]);
  assertEquals(registry.get("a", "2")?.version, "2");
  assertEquals([registry.get("a", "3"), registry.get("c"), registry.route("c")], [undefined, undefined, undefined]);
});

Deno.test("Registry.add() refuses a name and version that is taken", () => {
  const registry = registryOf({ a: EMPTY });
  assertThrows(() => registry.add(deploymentOf(EMPTY)), RangeError, 'function "a" version "1": there is one already');
  registry.add(deploymentOf(EMPTY, { version: "2" }));
});

Deno.test("Registry.addFailed() lets callers know of a function that cannot be read, until it can", async () => {
  const registry = new Registry(SILENT);
  registry.addFailed("a", "1");
  const entry = registry.get("a")!;
  assertEquals([entry.state, entry.kinds, registry.isWarm(entry), registry.statusOf("a", "1")], [
    "failed",
    [],
    false,
    undefined,
  ]);
  await assertFails("unavailable", 'Function "a" cannot be loaded', () => predict(registry));
  await assertFails("unavailable", 'Function "a" cannot', () => registry.sessionBoundsOf({ model: "a", version: "1" }));
  await registry.loadWarm();
  registry.deploy(deploymentOf(labelled("mended")));
  assertEquals([registry.get("a")?.state, await predict(registry)], ["registered", "mended"]);
});

Deno.test("Registry.invoke() and entryOf() say that there is no such function or version", async () => {
  const registry = registryOf({ a: EMPTY });
  assertEquals(registry.entryOf({ model: "a", version: undefined }).name, "a");
  assertEquals(registry.sessionBoundsOf({ model: "a", version: "1" }).maxTurns, 100);
  for (const call of [{ model: "b", version: undefined }, { model: "a", version: "2" }]) {
    const text = `There is no model "${call.model}"`;
    await assertFails("not_found", text, () => registry.entryOf(call));
    await assertFails("not_found", text, () => registry.sessionBoundsOf(call));
    await assertFails("not_found", text, () => registry.pin(call));
    await assertFails("not_found", text, () => registry.invoke(predictCall(call)));
  }
});

Deno.test("Registry.loadWarm() loads the warm functions only, and survives one that fails", async () => {
  const registry = new Registry(SILENT);
  const sick = defineModel({ load: () => Promise.reject(new Error("no")), predict: () => [] });
  registry.add(deploymentOf(EMPTY, { name: "cold" }));
  registry.add(deploymentOf(EMPTY, { name: "warm", warm: true }));
  registry.add(deploymentOf(sick, { name: "sick", warm: true }));
  await registry.loadWarm();
  const states = Object.fromEntries([...registry.list()].map(({ name, state }) => [name, state]));
  assertEquals(states, { cold: "registered", sick: "failed", warm: "ready" });
  assertEquals([...registry.list()].map((entry) => registry.isWarm(entry)), [false, true, true]);
  await registry.closeAll();
});

Deno.test("Registry.onChange() tells of every state and every change of the list until it is taken back", async () => {
  const registry = registryOf({ a: EMPTY });
  const seen: string[] = [];
  const takeBack = registry.onChange(() => {
    seen.push([...registry.list()].map(({ version, state }) => `${version} ${state}`).join());
  });
  await predict(registry);
  registry.deploy(deploymentOf(EMPTY, { version: "2" }));
  registry.remove("a", "2");
  takeBack();
  await registry.closeAll();
  assertEquals(seen, ["1 loading", "1 ready", "2 registered,1 ready", "1 ready"]);
});

Deno.test("Registry.statusOf() and isBusy tell what runs", async () => {
  const gate = Promise.withResolvers<void>();
  const registry = registryOf({ a: labelled("a", [], gate.promise), b: EMPTY });
  registry.addFailed("c", "1");
  assertEquals([registry.statusOf("a", "1"), registry.isBusy], [
    { instances: 0, maxInstances: 1, busy: 0, queued: 0 },
    false,
  ]);
  const call = predict(registry);
  await settled();
  assertEquals([registry.statusOf("a", "1"), registry.isBusy], [
    { instances: 1, maxInstances: 1, busy: 1, queued: 0 },
    true,
  ]);
  gate.resolve();
  await call;
  assertEquals([registry.isBusy, registry.statusOf("a", "2"), registry.statusOf("x", "1")], [
    false,
    undefined,
    undefined,
  ]);
});

Deno.test("Registry.endSession() runs the close of the load that served the session, with a copy of it", async () => {
  const closed: unknown[] = [];
  const talker = (label: string) =>
    defineModel({
      chat: async function* () {},
      close: (session, reason) => void closed.push([label, session, reason]),
    });
  const registry = registryOf({ a: talker("old"), mute: EMPTY });
  const pin = registry.pin({ model: "a", version: undefined });
  registry.deploy(deploymentOf(talker("new")));
  const snapshot = { id: "s", turn: 1, history: [], state: { n: 1 } };
  await registry.endSession(pin.revision, snapshot, "evicted");
  assertEquals(closed, [["old", snapshot, "evicted"]]);
  assert((closed[0] as unknown[])[1] !== snapshot);
  await registry.endSession(registry.get("mute")!.revision, snapshot, "idle");
  await registry.endSession(99, snapshot, "idle");
  assertEquals(closed.length, 1);
});

Deno.test("Registry.deploy() replaces a version: calls in progress finish, new ones get the new load", async () => {
  const gate = Promise.withResolvers<void>();
  const unloaded: string[] = [];
  const registry = registryOf({ a: labelled("old", unloaded, gate.promise) });
  const before = registry.get("a")!;
  const calls = [predict(registry), predict(registry, { revision: before.revision })];
  await settled();
  registry.deploy(deploymentOf(labelled("new", unloaded)));
  const after = registry.get("a")!;
  assert(after.revision > before.revision);
  assertEquals([...registry.list()].length, 1);
  assertEquals(await predict(registry), "new");
  assertEquals([registry.get("a")?.state, unloaded], ["ready", []]);
  gate.resolve();
  assertEquals(await Promise.all(calls), ["old", "old"]);
  await settled();
  assertEquals([unloaded, registry.get("a")?.state, before.state], [["old"], "ready", "unloaded"]);
});

Deno.test("Registry.invoke() gives a call that was routed to a load that closes now to its successor", async () => {
  const gate = Promise.withResolvers<void>();
  const registry = registryOf({ a: labelled("old", [], gate.promise) });
  const { revision } = registry.get("a")!;
  const call = predict(registry);
  await settled();
  registry.deploy(deploymentOf(labelled("new")));
  assertEquals(await predict(registry, { revision }), "new");
  assertEquals(registry.entryOf({ model: "a", version: "1", revision }).revision, revision + 1);
  gate.resolve();
  await call;
  await settled();
  assertEquals(await predict(registry, { revision }), "new"); // forgotten by now
});

Deno.test("Registry.pin() keeps a replaced load for its session until it is released", async () => {
  const unloaded: string[] = [];
  const registry = registryOf({ a: labelled("old", unloaded) });
  const call = { model: "a", version: undefined };
  const pins = [registry.pin(call), registry.pin(call)];
  const { version, revision } = pins[0]!;
  assertEquals([version, revision], ["1", registry.get("a")!.revision]);
  await predict(registry);
  registry.deploy(deploymentOf(labelled("new", unloaded)));
  assertEquals([await predict(registry, { revision }), await predict(registry)], ["old", "new"]);
  const late = registry.pin({ ...call, revision });
  assertEquals(late.revision, revision);
  pins[0]!.release();
  pins[0]!.release(); // counts once
  pins[1]!.release();
  await settled();
  assertEquals([unloaded, await predict(registry, { revision })], [[], "old"]);
  late.release();
  await settled();
  assertEquals([unloaded, await predict(registry, { revision })], [["old"], "new"]);
});

Deno.test("Registry.pin() that is released keeps the load that answers now", async () => {
  const unloaded: string[] = [];
  const registry = registryOf({ a: labelled("now", unloaded) });
  await predict(registry);
  registry.pin({ model: "a", version: undefined }).release();
  await settled();
  assertEquals([await predict(registry), unloaded], ["now", []]);
});

Deno.test("Registry.onCrowded() tells of the oldest replaced load when more than four of a version have sessions", () => {
  const registry = registryOf({ a: EMPTY, b: EMPTY });
  const crowded: number[] = [];
  registry.onCrowded = (revision) => crowded.push(revision);
  const pinned = [];
  for (let i = 0; i < 6; i++) {
    registry.pin({ model: "b", version: "1" });
    registry.deploy(deploymentOf(EMPTY, { name: "b" })); // counts for itself
    crowded.length = 0;
    pinned.push(registry.pin({ model: "a", version: "1" }));
    registry.deploy(deploymentOf(EMPTY));
    assertEquals(crowded, pinned.slice(0, -4).map(({ revision }) => revision));
  }
  for (const pin of pinned.slice(1)) pin.release();
  crowded.length = 0;
  registry.deploy(deploymentOf(EMPTY));
  assertEquals(crowded, []);
});

Deno.test("Registry.remove() takes a version out: calls in progress and sessions of it finish", async () => {
  const gate = Promise.withResolvers<void>();
  const unloaded: string[] = [];
  const registry = new Registry(SILENT);
  registry.add(deploymentOf(labelled("first", unloaded)));
  registry.add(deploymentOf(labelled("second", unloaded, gate.promise), { version: "2" }));
  const pin = registry.pin({ model: "a", version: undefined });
  const call = predict(registry);
  await settled();
  registry.remove("a", "2");
  registry.remove("a", "2");
  registry.remove("x", "1");
  assertEquals([...registry.list()].map(({ version }) => version), ["1"]);
  assertEquals(await predict(registry), "first");
  await assertFails("not_found", 'no model "a"', () => predict(registry, { version: "2" }));
  const turn = predict(registry, { version: pin.version, revision: pin.revision });
  gate.resolve();
  assertEquals([await call, await turn, unloaded], ["second", "second", []]);
  pin.release();
  await settled();
  assertEquals(unloaded, ["second"]);
});

/** Math.random() gives these, one after the other, until it is disposed. */
function drawing(...numbers: number[]): Disposable {
  const { random } = Math;
  Math.random = () => numbers.shift()!;
  return { [Symbol.dispose]: () => Math.random = random };
}

Deno.test("Registry.setWeights() splits by weight, among the versions that there are", () => {
  const registry = new Registry(SILENT);
  for (const version of ["1", "2", "3"]) registry.add(deploymentOf(EMPTY, { version }));
  registry.add(deploymentOf(EMPTY, { name: "b" }));
  const routed = (...numbers: number[]) => {
    using _numbers = drawing(...numbers);
    return numbers.slice().map(() => registry.route("a")?.version).join();
  };
  registry.setWeights("a", { "1": 3, "2": 1, "7": 96, "toString": 5 });
  assertEquals(routed(0, 0.24, 0.25, 0.9999), "2,2,1,1"); // the newest is drawn first; 3 has no weight
  assertEquals(registry.get("a")?.version, "3"); // the split is for calls only
  assertEquals(registry.route("b")?.version, "1");
  registry.setWeights("a", { "1": 0.5, "2": 0, "3": 0.5 });
  assertEquals(routed(0, 0.5, 0.9999), "3,1,1");
  registry.remove("a", "1");
  assertEquals(routed(0, 0.9999), "3,3");
  registry.setWeights("a", { "2": 0, "9": 1 });
  assertEquals(routed(0, 0.9999), "3,3"); // none that is there has a weight
  registry.setWeights("a", { "2": 1 });
  assertEquals(routed(0.5), "2");
  registry.setWeights("a", undefined);
  assertEquals(registry.route("a")?.version, "3");
});

Deno.test("Registry.closeAll() unloads what is loaded, the last registered first, replaced loads too", async () => {
  const unloaded: string[] = [];
  const names = ["b", "c", "a", "d"];
  const registry = registryOf(Object.fromEntries(names.map((name) => [name, labelled(name, unloaded)])));
  for (const model of ["a", "b", "c"]) await predict(registry, { model });
  registry.pin({ model: "b", version: "1" });
  registry.deploy(deploymentOf(labelled("new b", unloaded), { name: "b" }));
  await predict(registry, { model: "b" });
  await registry.closeAll();
  assertEquals(unloaded, ["new b", "a", "c", "b"]);
  assertEquals([registry.get("a")?.state, registry.get("d")?.state], ["unloaded", "registered"]);
});

Deno.test("Registry.closeAll() goes on when one cannot be closed, and logs it", async () => {
  const { log, records } = recordLog();
  const unloaded: string[] = [];
  const registry = new Registry(log);
  registry.add(deploymentOf(labelled("a", unloaded)));
  const cause = new Error("stuck");
  registry.add({ ...fake(resolveModel(EMPTY, "sick")), close: () => Promise.reject(cause) });
  await predict(registry);
  await registry.closeAll();
  assertEquals(unloaded, ["a"]);
  assertEquals(records, [
    { level: "error", message: "Cannot unload the function", fields: { model: "sick", version: "1", cause } },
  ]);
});

function fake(description: Deployment["description"]): Deployment {
  return {
    description,
    state: "ready",
    status: { instances: 1, maxInstances: 1, busy: 0, queued: 0 },
    instanceStates: { idle: 1, busy: 0, loading: 0 },
    hasRoom: true,
    warm: false,
    invoke: async function* () {},
    unload: () => {},
    start: () => Promise.resolve(),
    endSession: () => Promise.resolve(),
    close: () => Promise.resolve(),
    onChange: () => {},
  };
}

Deno.test("Registry.closeAll() refuses calls and sessions from then on, and waits for a replaced load that closes", async () => {
  const gate = Promise.withResolvers<void>();
  const unloaded: string[] = [];
  const registry = registryOf({ a: labelled("old", unloaded, gate.promise) });
  const call = predict(registry);
  await settled();
  registry.deploy(deploymentOf(labelled("new", unloaded)));
  let isClosed = false;
  const closing = registry.closeAll().then(() => isClosed = true);
  await assertFails("unavailable", "The server is shutting down", () => predict(registry));
  await assertFails("unavailable", "The server is shutting down", () => registry.pin({ model: "a", version: "1" }));
  await settled();
  assertEquals([isClosed, unloaded], [false, []]);
  gate.resolve();
  await Promise.all([call, closing]);
  assertEquals(unloaded, ["old"]);
});

Deno.test("Registry keeps an entry's state up to date, and tells apart what replaced it", async () => {
  const registry = registryOf({ a: EMPTY });
  const entry: CatalogEntry = registry.get("a")!;
  assertEquals(entry.state, "registered");
  await predict(registry);
  assertStrictEquals(registry.get("a"), entry);
  assertEquals(entry.state, "ready");
});
