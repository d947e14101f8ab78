import { assert, assertEquals, assertRejects } from "tensorlet/assert";
import { codeOf, fakePool, withOverdue } from "../../test/harness/fake_pool.ts";
import { FakeClock, settled } from "../../test/harness/clock.ts";

Deno.test("Pool.close() waits for the calls in progress, queued ones too, and ends the instances then", async () => {
  using _clock = new FakeClock();
  const { pool, instance, states, call } = fakePool({ concurrency: 1, graceMs: 70 });
  const calls = [call("a"), call("b")];
  await settled();
  let isClosed = false;
  const closing = pool.close().then(() => isClosed = true);
  const late = call("late"); // routed before the close began
  await settled();
  assertEquals([isClosed, pool.state, instance(0).closed], [false, "draining", []]);
  for (let i = 0; i < 3; i++) {
    instance(0).runs[i]!.finish();
    await settled();
  }
  assertEquals(await Promise.all([...calls, late].map(codeOf)), ["ok", "ok", "ok"]);
  await closing;
  assertEquals([instance(0).closed, pool.state, pool.status.instances], [[70], "unloaded", 0]);
  await pool.close();
  assertEquals([instance(0).closed, states], [[70], ["loading", "ready", "draining", "unloaded"]]);
});

Deno.test("Pool.close() lets a start go on that a call waits for", async () => {
  using _clock = new FakeClock();
  const { pool, launches, instance, call } = fakePool({ onLaunch: () => {} });
  const waiting = call("a");
  await settled();
  const closing = pool.close();
  await settled();
  assert(!launches[0]!.signal.aborted);
  launches[0]!.succeed();
  await settled();
  instance(0).runs[0]!.finish();
  assertEquals(await codeOf(waiting), "ok");
  await closing;
  assertEquals([instance(0).closed.length, pool.state], [1, "unloaded"]);
});

Deno.test("Pool.close() aborts a start that no call waits for, ends what comes of it, and lets nothing start after", async () => {
  using clock = new FakeClock();
  const { pool, launches, instance, call, records } = fakePool({ onLaunch: () => {} });
  const starting = pool.start().catch((error) => error.code);
  await settled();
  let isClosed = false;
  const closing = pool.close().then(() => isClosed = true);
  assertEquals(await starting, "unavailable");
  const { reason } = launches[0]!.signal;
  assertEquals([reason.code, reason.message, isClosed], ["unavailable", "The server is shutting down", false]);
  launches[0]!.succeed();
  await closing;
  assertEquals([instance(0).closed.length, pool.state], [1, "unloaded"]);
  assertEquals(records.filter(({ level }) => level === "error"), []);
  await assertRejects(() => pool.start());
  assertEquals(launches.length, 1);
  call("late");
  await settled();
  assertEquals([launches.length, clock.armed], [1, 0]);
});

Deno.test("Pool.close() of what is not loaded does nothing, and stops what would try again", async () => {
  using clock = new FakeClock();
  const cold = fakePool();
  await cold.pool.close();
  assertEquals([cold.states, cold.pool.state], [[], "registered"]);
  const failed = fakePool({ warm: true, onLaunch: (launch) => launch.fail() });
  await failed.pool.start().catch(() => {});
  await failed.pool.close();
  await clock.advance(10_000);
  assertEquals([failed.launches.length, clock.armed], [1, 0]);
});

Deno.test("Pool.close() leaves no timer, and replaces nothing", async () => {
  using clock = new FakeClock();
  const { pool, launches, instance } = fakePool({ instances: { min: 2, max: 3 }, idleMs: 1000 });
  await pool.start();
  instance(0).crash();
  await settled();
  await pool.close();
  await clock.advance(10_000);
  assertEquals([launches.length, clock.armed, pool.state], [3, 0, "unloaded"]);
});

Deno.test("Pool.close() gives the handlers of aborted calls their grace time before it unloads", async () => {
  using clock = new FakeClock();
  const { pool, instance, records } = await withOverdue();
  instance(0).runs[1]!.finish();
  const closing = pool.close();
  await clock.advance(99);
  assertEquals(instance(0).closed, []);
  instance(0).runs[0]!.settle();
  await settled();
  instance(0).runs[1]!.settle();
  await closing;
  assertEquals([instance(0).closed, instance(0).killed, clock.armed], [[100], undefined, 0]);
  assertEquals(records.filter(({ level }) => level === "warn"), []);
});

Deno.test("Pool.close() does not wait for a handler longer than its grace time", async () => {
  using clock = new FakeClock();
  const { pool, instance, other } = await withOverdue();
  instance(0).runs[1]!.finish();
  instance(0).runs[1]!.settle();
  assertEquals(await codeOf(other), "ok");
  const closing = pool.close();
  await clock.advance(100);
  await closing;
  assertEquals([instance(0).closed, instance(0).killed], [[100], undefined]);
});

Deno.test("Pool.close() goes on when an unload fails", async () => {
  using _clock = new FakeClock();
  const { pool, instance, records } = fakePool({ instances: { min: 2, max: 2 } });
  await pool.start();
  instance(0).unload = () => Promise.reject(new Error("stuck"));
  await pool.close();
  assertEquals([instance(0), instance(1)].map(({ closed }) => closed.length), [1, 1]);
  assertEquals(records.filter(({ level }) => level === "error").length, 1);
});

Deno.test("Pool.close() waits for an instance that was about to end by itself", async () => {
  using clock = new FakeClock();
  const { pool, instance, call } = fakePool({ idleMs: 1000 });
  const only = call("a");
  await settled();
  instance(0).runs[0]!.finish();
  assertEquals(await codeOf(only), "ok");
  const unloaded = Promise.withResolvers<void>();
  instance(0).unload = () => unloaded.promise;
  await clock.advance(1000);
  assertEquals(pool.status.instances, 0);
  let closed = false;
  const closing = pool.close().then(() => closed = true);
  await settled();
  assertEquals(closed, false);
  unloaded.resolve();
  await closing;
});
