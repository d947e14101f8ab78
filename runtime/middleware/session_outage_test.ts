import { assertEquals } from "tensorlet/assert";
import { assertFails, NEVER, recordLog } from "../../test/harness/calls.ts";
import { FakeClock } from "../../test/harness/clock.ts";
import { ModelError } from "../core/error.ts";
import { reportOutages } from "./session_outage.ts";
import { MemorySessionStore, type SessionStore } from "./session_store.ts";

// A store whose operations fail with what is set for them.
function failingStore() {
  const memory = new MemorySessionStore();
  const failures: { -readonly [K in keyof SessionStore]?: unknown } = {};
  const fail = <T>(what: keyof SessionStore, answer: () => Promise<T>): Promise<T> => {
    if (what in failures) throw failures[what]; // not a rejection: a store of one's own may do that too
    return answer();
  };
  const store: SessionStore = {
    durable: true,
    lock: (...args) => fail("lock", () => memory.lock(...args)),
    load: (...args) => fail("load", () => memory.load(...args)),
    save: (key, record) => fail("save", () => memory.save(key, record)),
    touch: (key, servedBy) => fail("touch", () => memory.touch(key, servedBy)),
    delete: (key) => fail("delete", () => memory.delete(key)),
    count: () => fail("count", () => memory.count()),
    close: () => memory.close(),
  };
  const { log, records } = recordLog();
  return { store: reportOutages(store, log), failures, levels: () => records.map(({ level }) => level), records };
}

const record = { snapshot: { id: "s", turn: 1, history: [], state: 1 }, version: "1", servedBy: "me" };

Deno.test("reportOutages() makes every failure unavailable, and tells the cause only to the log", async () => {
  using _clock = new FakeClock();
  const { store, failures, records } = failingStore();
  const lease = await store.lock("a", NEVER);
  const calls = {
    lock: () => store.lock("b", NEVER),
    load: () => store.load("a"),
    save: () => store.save("a", record, 1000, lease),
    touch: () => store.touch("a", "me", 1000),
    delete: () => store.delete("a", lease),
    count: () => store.count(),
  };
  const cause = new Error("connect ECONNREFUSED 10.0.0.1");
  for (const [what, call] of Object.entries(calls)) {
    failures[what as keyof SessionStore] = cause;
    const error = await assertFails("unavailable", "The session store cannot be reached: ", call);
    assertEquals([error.message.includes("ECONN"), error.details], [false, { retryAfterMs: 1000 }]);
  }
  assertEquals(records.map(({ level, fields }) => [level, fields.cause]), [["error", cause]]);
});

Deno.test("reportOutages() lets a store's own errors and answers through", async () => {
  const { store, failures, levels } = failingStore();
  const lease = await store.lock("a", NEVER);
  failures.save = new ModelError("resource_exhausted", "Too large");
  await assertFails("resource_exhausted", "Too large", () => store.save("a", record, 1000, lease));
  delete failures.save;
  await store.save("a", record, 1000, lease);
  assertEquals([await store.load("a"), await store.count(), store.durable], [record, 1, true]);
  await assertFails("cancelled", "", () => store.lock("a", AbortSignal.abort()));
  assertEquals(levels(), []);
});

Deno.test("reportOutages() ends an outage with what failed first, or with a save", async () => {
  using clock = new FakeClock();
  const { store, failures, levels, records } = failingStore();
  const lease = await store.lock("a", NEVER);
  failures.save = new Error("disk full");
  for (let i = 0; i < 3; i++) {
    await assertFails("unavailable", "", () => store.save("a", record, 1000, lease));
    await store.load("a");
  }
  assertEquals(levels(), ["error"]);
  await clock.advance(700);
  delete failures.save;
  await store.save("a", record, 1000, lease);
  assertEquals([levels(), records[1]?.fields.outageMs], [["error", "info"], 700]);
  failures.count = new Error("gone");
  await assertFails("unavailable", "", () => store.count());
  await store.save("a", record, 1000, lease);
  assertEquals(levels(), ["error", "info", "error", "info"]);
});
