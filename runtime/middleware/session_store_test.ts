import { assertEquals } from "tensorlet/assert";
import { assertFails, NEVER } from "../../test/harness/calls.ts";
import { settled } from "../../test/harness/clock.ts";
import { MemorySessionStore } from "./session_store.ts";

const snapshot = { id: "s", turn: 1, history: [], state: 1 };

Deno.test("MemorySessionStore keeps, replaces and forgets", async () => {
  const store = new MemorySessionStore();
  assertEquals(await store.load("a"), undefined);
  await store.save("a", snapshot);
  await store.save("a", { ...snapshot, turn: 2 });
  assertEquals((await store.load("a"))?.turn, 2);
  await store.delete("a");
  await store.delete("a");
  assertEquals(await store.load("a"), undefined);
});

Deno.test("MemorySessionStore takes any key for data", async () => {
  const store = new MemorySessionStore();
  assertEquals([await store.load("__proto__"), await store.load("constructor")], [undefined, undefined]);
  await store.save("__proto__", snapshot);
  assertEquals([await store.load("__proto__"), await store.load("toString")], [snapshot, undefined]);
});

Deno.test("MemorySessionStore.lock() lets one in at a time, in order", async () => {
  const store = new MemorySessionStore();
  const order: string[] = [];
  const turn = async (name: string) => {
    const unlock = await store.lock("a", NEVER);
    order.push(`${name} in`);
    await settled();
    order.push(`${name} out`);
    unlock();
  };
  await Promise.all(["1", "2", "3"].map(turn));
  assertEquals(order, ["1 in", "1 out", "2 in", "2 out", "3 in", "3 out"]);
  await turn("4");
});

Deno.test("MemorySessionStore.lock() locks each key for itself", async () => {
  const store = new MemorySessionStore();
  const unlock = await store.lock("a", NEVER);
  (await store.lock("b", NEVER))();
  unlock();
});

Deno.test("MemorySessionStore.lock() lets those behind an aborted wait in, not before their turn", async () => {
  const store = new MemorySessionStore();
  const controller = new AbortController();
  const first = await store.lock("a", NEVER);
  const aborted = store.lock("a", controller.signal);
  let isIn = false;
  const last = store.lock("a", NEVER).then((unlock) => (isIn = true, unlock));
  controller.abort();
  await assertFails("cancelled", "", () => aborted);
  await settled();
  assertEquals(isIn, false);
  first();
  (await last)();
  (await store.lock("a", NEVER))();
});

Deno.test("MemorySessionStore.lock() lets nobody in early because the last in the line was aborted", async () => {
  const store = new MemorySessionStore();
  const first = await store.lock("a", NEVER);
  await assertFails("cancelled", "", () => store.lock("a", AbortSignal.abort()));
  let isIn = false;
  const last = store.lock("a", NEVER).then((unlock) => (isIn = true, unlock));
  await settled();
  assertEquals(isIn, false);
  first();
  (await last)();
});

Deno.test("MemorySessionStore.lock() takes a second unlock for nothing", async () => {
  const store = new MemorySessionStore();
  const first = await store.lock("a", NEVER);
  first();
  const second = await store.lock("a", NEVER);
  first();
  let isIn = false;
  const third = store.lock("a", NEVER).then((unlock) => (isIn = true, unlock));
  await settled();
  assertEquals(isIn, false);
  second();
  (await third)();
});
