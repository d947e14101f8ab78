import { assertEquals } from "tensorlet/assert";
import { assertFails, NEVER } from "../../test/harness/calls.ts";
import { settled } from "../../test/harness/clock.ts";
import { MemorySessionStore, type SessionRecord } from "./session_store.ts";

const record = recordOf(1);

function recordOf(turn: number, servedBy = "me"): SessionRecord {
  return { snapshot: { id: "s", turn, history: [], state: 1 }, version: "1", servedBy };
}

Deno.test("MemorySessionStore keeps, replaces and forgets", async () => {
  const store = new MemorySessionStore();
  assertEquals(await store.load("a"), undefined);
  await store.save("a", record);
  await store.save("a", recordOf(2));
  assertEquals([await store.load("a"), await store.count()], [recordOf(2), 1]);
  assertEquals([await store.touch("a", "you"), await store.touch("b", "you")], [true, false]);
  assertEquals([await store.load("a"), await store.load("b")], [recordOf(2, "you"), undefined]);
  await store.delete("a");
  await store.delete("a");
  assertEquals(await store.load("a"), undefined);
});

Deno.test("MemorySessionStore takes any key for data", async () => {
  const store = new MemorySessionStore();
  assertEquals([await store.load("__proto__"), await store.load("constructor")], [undefined, undefined]);
  await store.save("__proto__", record);
  assertEquals([await store.load("__proto__"), await store.load("toString")], [record, undefined]);
});

Deno.test("MemorySessionStore.lock() lets one in at a time, in order", async () => {
  const store = new MemorySessionStore();
  const order: string[] = [];
  const turn = async (name: string) => {
    const lease = await store.lock("a", NEVER);
    order.push(`${name} in`);
    await settled();
    order.push(`${name} out`);
    lease.release();
  };
  await Promise.all(["1", "2", "3"].map(turn));
  assertEquals(order, ["1 in", "1 out", "2 in", "2 out", "3 in", "3 out"]);
  await turn("4");
});

Deno.test("MemorySessionStore.lock() locks each key for itself", async () => {
  const store = new MemorySessionStore();
  const lease = await store.lock("a", NEVER);
  (await store.lock("b", NEVER)).release();
  lease.release();
});

Deno.test("MemorySessionStore.lock() lets those behind an aborted wait in, not before their turn", async () => {
  const store = new MemorySessionStore();
  const controller = new AbortController();
  const first = await store.lock("a", NEVER);
  const aborted = store.lock("a", controller.signal);
  let isIn = false;
  const last = store.lock("a", NEVER).then((lease) => (isIn = true, lease));
  controller.abort();
  await assertFails("cancelled", "", () => aborted);
  await settled();
  assertEquals(isIn, false);
  first.release();
  (await last).release();
  (await store.lock("a", NEVER)).release();
});

Deno.test("MemorySessionStore.lock() lets nobody in early because the last in the line was aborted", async () => {
  const store = new MemorySessionStore();
  const first = await store.lock("a", NEVER);
  await assertFails("cancelled", "", () => store.lock("a", AbortSignal.abort()));
  let isIn = false;
  const last = store.lock("a", NEVER).then((lease) => (isIn = true, lease));
  await settled();
  assertEquals(isIn, false);
  first.release();
  (await last).release();
});

Deno.test("MemorySessionStore.lock() takes a second unlock for nothing", async () => {
  const store = new MemorySessionStore();
  const first = await store.lock("a", NEVER);
  first.release();
  const second = await store.lock("a", NEVER);
  first.release();
  let isIn = false;
  const third = store.lock("a", NEVER).then((lease) => (isIn = true, lease));
  await settled();
  assertEquals(isIn, false);
  second.release();
  (await third).release();
});
