import { assertEquals, assertInstanceOf, assertRejects } from "tensorlet/assert";
import {
  codeOf,
  type FakeInstance,
  fakePool,
  type FakePoolOptions,
  withOverdue,
} from "../../test/harness/fake_pool.ts";
import { FakeClock, settled } from "../../test/harness/clock.ts";
import { ModelError } from "../core/error.ts";

const SNAPSHOT = { id: "s", turn: 1, history: [], state: 1 };
const IGNORED = 'Function "model" ignored an abort for 100 ms (option graceMs)';

Deno.test("Pool kills an instance at once when a handler ignores its abort and the event loop does not answer", async () => {
  using clock = new FakeClock();
  const { pool, instance, launches, other, records, call } = await withOverdue();
  instance(0).isFree = false;
  await clock.advance(99);
  assertEquals([instance(0).killed, records.some(({ level }) => level === "warn")], [undefined, false]);
  await clock.advance(1);
  const lost = await other.outcome;
  assertInstanceOf(lost, ModelError);
  assertEquals([lost.code, lost.message, lost.details], [
    "unavailable",
    `${IGNORED}; its instance was ended`,
    { retryAfterMs: 100 },
  ]);
  assertEquals(records.find(({ level }) => level === "warn"), {
    level: "warn",
    message: `${IGNORED}: its instance is replaced`,
    fields: { version: "1" },
  });
  await settled();
  assertEquals(records.filter(({ level }) => level === "error"), []);
  assertEquals([launches.length, pool.state, pool.status.busy], [1, "registered", 0]);
  call("next");
  await settled();
  assertEquals(instance(1).ids, ["next"]);
});

Deno.test("Pool gives the other calls time when the event loop answers, and gives new ones to another instance", async () => {
  using clock = new FakeClock();
  const { instance, other, call, pool } = await withOverdue();
  await clock.advance(100);
  const next = call("next");
  await settled();
  assertEquals([instance(0).ids, instance(1).ids], [["ignoring", "other"], ["next"]]);
  await clock.advance(5000);
  assertEquals(instance(0).killed, undefined);
  instance(0).runs[1]!.finish();
  instance(0).runs[1]!.settle();
  assertEquals(await codeOf(other), "ok");
  await settled();
  assertInstanceOf(instance(0).killed, ModelError);
  assertEquals(pool.status, { instances: 1, maxInstances: 1, busy: 1, queued: 0 });
  instance(1).runs[0]!.finish();
  assertEquals([await codeOf(next), instance(1).killed], ["ok", undefined]);
});

Deno.test("Pool ends an instance whose other calls do not end in ten seconds", async () => {
  using clock = new FakeClock();
  const { instance, other } = await withOverdue();
  await clock.advance(100);
  await clock.advance(9_999);
  assertEquals(instance(0).killed, undefined);
  await clock.advance(1);
  assertEquals([await codeOf(other), instance(0).killed?.code], ["unavailable", "unavailable"]);
});

Deno.test("Pool replaces the instance of a handler that ignores its abort where one is to be kept", async () => {
  using clock = new FakeClock();
  const { instance, launches, states } = await withOverdue({ warm: true });
  await clock.advance(100);
  assertEquals([instance(0).killed, launches.length, states], [undefined, 2, ["loading", "ready"]]);
});

Deno.test("Pool gives those who wait another instance before it ends the one that does not answer", async () => {
  using clock = new FakeClock();
  const { instance, launches, call } = await withOverdue();
  const probe = Promise.withResolvers<boolean>();
  instance(0).isFree = probe.promise;
  call("waiting");
  await clock.advance(100);
  assertEquals([launches.length, instance(0).killed], [1, undefined]);
  probe.resolve(false);
  await settled();
  assertEquals([instance(1).ids, instance(0).killed?.code], [["waiting"], "unavailable"]);
});

Deno.test("Pool lets a handler alone that ends within the grace time", async () => {
  using clock = new FakeClock();
  const { instance, records } = await withOverdue();
  await clock.advance(99);
  instance(0).runs[0]!.settle();
  await clock.advance(5000);
  assertEquals([instance(0).killed, records.filter(({ level }) => level !== "debug")], [undefined, []]);
});

Deno.test("Pool ends an instance once, however many of its handlers ignore their aborts", async () => {
  using clock = new FakeClock();
  const { instance, other, records } = await withOverdue();
  await clock.advance(50);
  other.abort();
  assertEquals(await codeOf(other), "cancelled");
  await clock.advance(50);
  instance(0).runs[0]!.settle();
  await clock.advance(50);
  assertEquals([instance(0).killed?.code, records.filter(({ level }) => level === "warn").length], ["unavailable", 1]);
});

Deno.test("Pool only warns of a handler that ignores its abort in an instance that cannot be ended", async () => {
  using clock = new FakeClock();
  const { instance, pool, records, other } = await withOverdue();
  instance(0).isolated = false;
  await clock.advance(100);
  assertEquals([instance(0).killed, pool.status.busy], [undefined, 2]);
  assertEquals(records.filter(({ level }) => level === "warn"), [{
    level: "warn",
    message: "A handler goes on though its call was aborted; it keeps its place",
    fields: { version: "1", graceMs: 100 },
  }]);
  instance(0).runs[1]!.finish();
  assertEquals(await codeOf(other), "ok");
});

Deno.test("Pool ends an instance that holds its event loop, though its call has no deadline", async () => {
  using clock = new FakeClock();
  const { instance, call, records, launches } = fakePool({ concurrency: 1 });
  const endless = call("endless");
  await settled();
  instance(0).isFree = new Promise(() => {}); // asked after five seconds, for a minute
  const waiting = call("waiting");
  await clock.advance(64_999);
  assertEquals(instance(0).killed, undefined);
  await clock.advance(1);
  assertEquals([await codeOf(endless), instance(0).killed?.code, launches.length], ["unavailable", "unavailable", 2]);
  assertEquals(records.filter(({ level }) => level === "warn").map(({ message }) => message), [
    'Function "model" held its event loop for 60000 ms: its instance is replaced',
  ]);
  instance(1).runs[0]!.finish();
  assertEquals(await codeOf(waiting), "ok");
});

Deno.test("Pool lets a long computation alone that ends in time", async () => {
  using clock = new FakeClock();
  const { instance, call } = fakePool({ callTimeoutMs: 30_000 });
  const slow = call("slow");
  await settled();
  const probe = Promise.withResolvers<boolean>();
  instance(0).isFree = probe.promise;
  await clock.advance(29_000);
  probe.resolve(true);
  await settled();
  instance(0).runs[0]!.finish();
  assertEquals([await codeOf(slow), instance(0).killed], ["ok", undefined]);
  await clock.advance(10_000);
  assertEquals(instance(0).killed, undefined);
});

const closings = (instances: readonly FakeInstance[]) => instances.map(({ closed }) => closed.length);

Deno.test("Pool ends an instance that was idle for its time, and starts one again for the next call", async () => {
  using clock = new FakeClock();
  const { pool, instance, launches, states, call } = fakePool({ idleMs: 1000, graceMs: 70 });
  const first = call("a");
  await clock.advance(5000);
  assertEquals(instance(0).closed, []); // busy
  instance(0).runs[0]!.finish();
  await first.outcome;
  await clock.advance(600);
  const second = call("b");
  await settled();
  instance(0).runs[1]!.finish();
  await second.outcome;
  await clock.advance(999);
  assertEquals(instance(0).closed, []);
  await clock.advance(1);
  assertEquals([instance(0).closed, pool.state, pool.status.instances], [[70], "registered", 0]);
  await clock.advance(5000);
  assertEquals(clock.armed, 0);
  const third = call("c");
  await settled();
  instance(1).runs[0]!.finish();
  assertEquals([await codeOf(third), launches.length], ["ok", 2]);
  assertEquals(states, ["loading", "ready", "registered", "loading", "ready"]);
});

Deno.test("Pool ends an instance that no call has come to", async () => {
  using clock = new FakeClock();
  const { pool, instance } = fakePool({ idleMs: 1000 });
  await pool.start();
  await clock.advance(1000);
  assertEquals([instance(0).closed.length, pool.state], [1, "registered"]);
});

Deno.test("Pool ends idle instances down to the minimum, each at its own time", async () => {
  using clock = new FakeClock();
  const { pool, instance, call } = fakePool({ idleMs: 1000, instances: { min: 1, max: 4 }, concurrency: 1 });
  const calls = ["a", "b", "c", "d"].map((id) => call(id));
  await settled();
  const all = [0, 1, 2, 3].map(instance);
  for (const index of [1, 2]) {
    all[index]!.runs[0]!.finish();
    await calls[index]!.outcome;
    await clock.advance(500);
  }
  assertEquals(closings(all), [0, 1, 0, 0]);
  all[3]!.runs[0]!.finish();
  await calls[3]!.outcome;
  await clock.advance(500);
  assertEquals(closings(all), [0, 1, 1, 0]);
  await clock.advance(10_000);
  assertEquals([closings(all), pool.status.instances], [[0, 1, 1, 1], 1]); // the busy one is the one that is kept
  all[0]!.runs[0]!.finish();
  await calls[0]!.outcome;
  await clock.advance(10_000);
  assertEquals([closings(all), pool.state, clock.armed], [[0, 1, 1, 1], "ready", 0]);
});

Deno.test("Pool keeps the minimum of those whose idle time is over at once", async () => {
  using clock = new FakeClock();
  const { pool, instance, call } = fakePool({ idleMs: 1000, instances: { min: 1, max: 3 }, concurrency: 1 });
  const calls = ["a", "b", "c"].map((id) => call(id));
  await settled();
  const all = [0, 1, 2].map(instance);
  for (const { runs } of all) runs[0]!.finish();
  await Promise.all(calls.map(codeOf));
  await clock.advance(1000);
  assertEquals([closings(all), pool.status.instances], [[1, 1, 0], 1]);
});

Deno.test("Pool keeps an instance of a warm function: without one it would not be serving", async () => {
  using clock = new FakeClock();
  const { pool, instance, launches } = fakePool({ idleMs: 1000, warm: true });
  await pool.start();
  await clock.advance(10_000);
  assertEquals([instance(0).closed, launches.length, pool.state], [[], 1, "ready"]);
});

Deno.test("Pool gives no call to an instance that it is ending", async () => {
  using clock = new FakeClock();
  const { instance, call } = fakePool({ idleMs: 1000 });
  const unloading = Promise.withResolvers<void>();
  const first = call("a");
  await settled();
  instance(0).unload = () => unloading.promise;
  instance(0).runs[0]!.finish();
  await first.outcome;
  await clock.advance(1000);
  call("b");
  await settled();
  assertEquals([instance(0).ids, instance(1).ids], [["a"], ["b"]]);
  unloading.resolve();
});

Deno.test("Pool logs an unload that fails", async () => {
  using clock = new FakeClock();
  const { pool, instance, records } = fakePool({ idleMs: 1000 });
  await pool.start();
  const cause = new Error("stuck");
  instance(0).unload = () => Promise.reject(cause);
  await clock.advance(1000);
  assertEquals(records.filter(({ level }) => level === "error"), [
    { level: "error", message: "Cannot unload the function", fields: { version: "1", cause } },
  ]);
});

/** A pool of two instances, with a session that was served by the second. */
async function withSession(options: FakePoolOptions = {}) {
  const fake = fakePool({ hasClose: true, instances: { min: 2, max: 2 }, concurrency: 2, ...options });
  await fake.pool.start();
  const other = fake.call("other");
  await settled();
  const turn = fake.call("turn", { sessionId: "s" });
  await settled();
  assertEquals([fake.instance(0).ids, fake.instance(1).ids], [["other"], ["turn"]]);
  return { ...fake, other, turn };
}

Deno.test("Pool gives the turns of a session to its instance, to another one where that has no place", async () => {
  using _clock = new FakeClock();
  const { instance, call } = await withSession();
  instance(0).runs[0]!.finish();
  await settled();
  for (const id of ["second", "third"]) {
    call(id, { sessionId: "s" });
    await settled();
  }
  assertEquals([instance(0).ids, instance(1).ids], [["other", "third"], ["turn", "second"]]);
});

Deno.test("Pool keeps no place for sessions of a function without close", async () => {
  using _clock = new FakeClock();
  const { instance, pool, call } = await withSession({ hasClose: false });
  call("second", { sessionId: "s" });
  await settled();
  assertEquals([instance(0).ids, instance(1).ids], [["other", "second"], ["turn"]]);
  await pool.endSession(SNAPSHOT, "idle");
  assertEquals([instance(0).endedSessions, instance(1).endedSessions], [[], []]);
});

Deno.test("Pool.endSession() tells the instance that served the session, once", async () => {
  using _clock = new FakeClock();
  const { pool, instance, turn } = await withSession();
  instance(1).runs[0]!.finish();
  assertEquals(await codeOf(turn), "ok");
  await pool.endSession(SNAPSHOT, "idle");
  await pool.endSession(SNAPSHOT, "evicted"); // forgotten: any instance
  assertEquals([instance(0).endedSessions, instance(1).endedSessions], [["s evicted"], ["s idle"]]);
});

Deno.test("Pool.endSession() takes another instance where the session's has gone, and starts one where there is none", async () => {
  using _clock = new FakeClock();
  const { pool, instance, launches } = await withSession({ instances: { min: 0, max: 2 }, concurrency: 1 });
  instance(1).crash();
  await settled();
  await pool.endSession(SNAPSHOT, "idle");
  assertEquals(instance(0).endedSessions, ["s idle"]);
  instance(0).crash();
  await settled();
  await pool.endSession(SNAPSHOT, "shutdown");
  assertEquals([launches.length, instance(2).endedSessions], [3, ["s shutdown"]]);
});

Deno.test("Pool.endSession() rejects when there is no instance and none can be started", async () => {
  using _clock = new FakeClock();
  const { pool, states } = fakePool({ hasClose: true, onLaunch: (launch) => launch.fail() });
  for (let i = 0; i < 2; i++) {
    await assertRejects(() => pool.endSession(SNAPSHOT, "idle"), ModelError, "cannot be loaded");
  }
  assertEquals(states, ["loading", "failed"]);
});

Deno.test("Pool.endSession() keeps its instance until the function's close is done", async () => {
  using clock = new FakeClock();
  const { pool, instance } = fakePool({ hasClose: true, idleMs: 1000 });
  await pool.start();
  const closing = Promise.withResolvers<void>();
  instance(0).endingSession = closing.promise;
  const ending = pool.endSession(SNAPSHOT, "idle");
  await clock.advance(5000);
  assertEquals([instance(0).closed, pool.status.busy], [[], 1]);
  closing.resolve();
  await ending;
  await clock.advance(1000);
  assertEquals([instance(0).closed.length, pool.status.busy], [1, 0]);
});

Deno.test("Pool forgets a session whose first turn fails: nobody ends it", async () => {
  using _clock = new FakeClock();
  const { pool, instance, turn } = await withSession();
  turn.abort();
  assertEquals(await codeOf(turn), "cancelled");
  await pool.endSession(SNAPSHOT, "idle");
  assertEquals([instance(0).endedSessions, instance(1).endedSessions], [["s idle"], []]);
});
