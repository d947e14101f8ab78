import { assertEquals } from "tensorlet/assert";
import { assertFails, chatCall, collect, predictCall, SILENT, textsOf } from "../test/harness/calls.ts";
import { FakeClock, settled } from "../test/harness/clock.ts";
import { assemble, type Assembly, DEFAULT_LIMITS } from "./assembly.ts";
import { type AnyModel, defineModel, resolveModel } from "./core/define.ts";
import { Registry } from "./core/registry.ts";
import type { ProtocolAdapter, ServingStatus } from "./protocols/adapter.ts";
import { inlinePool } from "./workers/inline.ts";

const EMPTY = defineModel({ predict: () => [] });
const protocol: ProtocolAdapter = () => ({
  rpc: [{ name: "a.Service", methods: [], file: { name: "", bytes: new Uint8Array(0), symbols: [] } }],
});

function poolOf(model: AnyModel, name: string, warm = false) {
  return inlinePool(resolveModel(model, name), { log: SILENT, warm });
}

function assembled(models: Record<string, [AnyModel, { readonly warm: boolean }?]>) {
  const registry = new Registry(SILENT);
  for (const [name, [model, options]] of Object.entries(models)) registry.add(poolOf(model, name, options?.warm));
  const assembly = assemble({ ...DEFAULT_LIMITS, registry, adapters: [protocol], interceptors: [], log: SILENT });
  return { registry, assembly };
}

function gatedLoad() {
  const gate = Promise.withResolvers<void>();
  return { gate, model: defineModel({ load: () => gate.promise, predict: () => [] }) };
}

const statuses = ({ health }: Assembly) => Object.fromEntries(health.list());

Deno.test("assemble().health is not serving until the warm functions are loaded", async () => {
  const { gate, model } = gatedLoad();
  const { registry, assembly } = assembled({ warm: [model, { warm: true }], cold: [EMPTY] });
  const loading = registry.loadWarm();
  assertEquals(statuses(assembly), {
    "": "not_serving",
    "a.Service": "not_serving",
    warm: "not_serving",
    cold: "serving",
  });
  gate.resolve();
  await loading;
  assertEquals(statuses(assembly), { "": "serving", "a.Service": "serving", warm: "serving", cold: "serving" });
  await assembly.close();
});

Deno.test("assemble().health knows each function's state, and what there is not", async () => {
  const sick = defineModel({ load: () => Promise.reject(new Error("no")), predict: () => [] });
  const { registry, assembly } = assembled({ sick: [sick], well: [EMPTY] });
  registry.addFailed("broken", "1");
  await assertFails("unavailable", "", () => collect(assembly.invoke(predictCall({ model: "sick" }))));
  const { health } = assembly;
  assertEquals(["sick", "broken", "well", "nothing", "", "a.Service"].map(health.status), [
    "not_serving",
    "not_serving",
    "serving",
    "unknown",
    "serving", // only warm functions count
    "serving",
  ]);
  await assembly.close();
});

Deno.test("assemble().health goes on serving when a function is reloaded or fails later", async () => {
  const { registry, assembly } = assembled({ warm: [EMPTY, { warm: true }] });
  await registry.loadWarm();
  const { gate, model } = gatedLoad();
  const reloaded = poolOf(model, "warm", true);
  registry.deploy(reloaded);
  const loading = reloaded.start();
  assertEquals(["", "warm"].map(assembly.health.status), ["serving", "serving"]);
  gate.resolve();
  await loading;
  const sick = poolOf(defineModel({ load: () => Promise.reject(new Error("no")), predict: () => [] }), "warm", true);
  registry.deploy(sick);
  await assertFails("unavailable", "", () => sick.start());
  assertEquals(["", "warm"].map(assembly.health.status), ["serving", "not_serving"]);
  await assembly.close();
});

Deno.test("assemble().health is not serving when the server drains", async () => {
  const { assembly } = assembled({ well: [EMPTY] });
  assembly.drain();
  assertEquals(new Set(Object.values(statuses(assembly))), new Set(["not_serving"]));
  assertEquals(assembly.health.status("nothing"), "unknown");
  assertEquals(assembly.draining.reason.code, "unavailable");
  await assembly.close();
});

Deno.test("assemble().health.watch() gives the status at once and then its changes, until it is aborted", async () => {
  const { gate, model } = gatedLoad();
  const { registry, assembly } = assembled({ warm: [model, { warm: true }], cold: [EMPTY] });
  const controller = new AbortController();
  const seen: ServingStatus[] = [];
  const watching = (async () => {
    for await (const status of assembly.health.watch("", controller.signal)) seen.push(status);
  })();
  await settled();
  assertEquals(seen, ["not_serving"]);
  const loading = registry.loadWarm();
  await collect(assembly.invoke(predictCall({ model: "cold" }))); // changes nothing for ""
  await settled();
  assertEquals(seen, ["not_serving"]);
  gate.resolve();
  await loading;
  await settled();
  assertEquals(seen, ["not_serving", "serving"]);
  controller.abort();
  await watching;
  await assembly.close();
  assertEquals(seen, ["not_serving", "serving"]);
});

Deno.test("assemble().health.watch() tells of the drain before it ends", async () => {
  const { assembly } = assembled({ well: [EMPTY] });
  const watching = collect(assembly.health.watch("well", assembly.draining));
  await settled();
  assembly.drain();
  assertEquals(await watching, ["serving", "not_serving"]);
  await assembly.close();
});

Deno.test("assemble().health.watch() watches what there is not, and leaves nothing behind when its reader leaves", async () => {
  const { registry, assembly } = assembled({});
  let watchers = 0;
  const onChange = registry.onChange.bind(registry);
  registry.onChange = (listener) => {
    watchers++;
    const takeBack = onChange(listener);
    return () => (watchers--, takeBack());
  };
  for await (const status of assembly.health.watch("nothing", new AbortController().signal)) {
    assertEquals([status, watchers], ["unknown", 1]);
    break;
  }
  assertEquals(watchers, 0);
  await assembly.close();
});

Deno.test("assemble().invoke fails with not_found when a protocol names no function that there is", async () => {
  const { assembly } = assembled({ well: [EMPTY] });
  await assertFails("not_found", 'There is no model "other"', () => {
    return collect(assembly.invoke(predictCall({ model: "other" })));
  });
  await assembly.close();
});

Deno.test("assemble().close() ends sessions before it unloads their functions", async () => {
  const steps: string[] = [];
  const talker = defineModel({
    unload: () => void steps.push("unload"),
    async *chat() {},
    close: (_, reason) => void steps.push(`close ${reason}`),
  });
  const { assembly } = assembled({ talker: [talker] });
  await collect(assembly.invoke(chatCall("x", { model: "talker" })));
  await assembly.close();
  assertEquals(steps, ["close shutdown", "unload"]);
});

Deno.test("assemble() keeps sessions on the load on which they began, and ends the idle ones of the oldest", async () => {
  using _clock = new FakeClock();
  const ended: string[] = [];
  const unloaded: string[] = [];
  const talker = (label: string) =>
    defineModel({
      session: { init: () => label },
      unload: () => void unloaded.push(label),
      async *chat(_, ctx) {
        yield `${label} ${ctx.session.state}`;
      },
      close: (session, reason) => void ended.push(`${label} ${session.id} ${reason}`),
    });
  const { registry, assembly } = assembled({ talker: [talker("r0")] });
  const say = async (sessionId: string) =>
    textsOf(await collect(assembly.invoke(chatCall("x", { model: "talker", sessionId }))));
  for (let i = 1; i <= 5; i++) {
    assertEquals(await say(`s${i}`), [`r${i - 1} r${i - 1}.`]);
    registry.deploy(poolOf(talker(`r${i}`), "talker"));
    await settled();
    assertEquals(ended, i < 5 ? [] : ["r0 s1 replaced"]);
  }
  assertEquals(unloaded, ["r0"]);
  assertEquals(await say("s2"), ["r1 r1."]);
  assertEquals(await say("s1"), ["r5 r5."]); // a new session
  await assembly.close();
  assertEquals(ended.toSorted(), [
    "r0 s1 replaced",
    "r1 s2 shutdown",
    "r2 s3 shutdown",
    "r3 s4 shutdown",
    "r4 s5 shutdown",
    "r5 s1 shutdown",
  ]);
  assertEquals(unloaded.toSorted(), ["r0", "r1", "r2", "r3", "r4", "r5"]);
});

Deno.test("assemble() lets a session end on the load that served it when its idle time is over after a deploy", async () => {
  using clock = new FakeClock();
  const steps: string[] = [];
  const talker = (label: string) =>
    defineModel({
      session: { init: () => 0, idleMs: 1000 },
      unload: () => void steps.push(`${label} unload`),
      async *chat() {},
      close: (_, reason) => void steps.push(`${label} ${reason}`),
    });
  const { registry, assembly } = assembled({ talker: [talker("old")] });
  await collect(assembly.invoke(chatCall("x", { model: "talker" })));
  registry.deploy(poolOf(talker("new"), "talker"));
  await clock.advance(1000);
  await settled();
  assertEquals(steps, ["old idle", "old unload"]);
  await assembly.close();
});
