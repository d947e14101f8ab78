import { assert, assertEquals, assertInstanceOf } from "tensorlet/assert";
import { codeOf, fakePool } from "../../test/harness/fake_pool.ts";
import { FakeClock, settled } from "../../test/harness/clock.ts";
import { ModelError } from "../core/error.ts";

Deno.test("Pool.invoke() starts one instance for concurrent first calls, and none before", async () => {
  using _clock = new FakeClock();
  const { pool, launches, states, instance, call } = fakePool({ onLaunch: () => {} });
  assertEquals([pool.state, launches.length], ["registered", 0]);
  const calls = [call("a"), call("b")];
  await settled();
  assertEquals([pool.state, launches.length], ["loading", 1]);
  assertEquals(pool.status, { instances: 0, maxInstances: 1, busy: 0, queued: 2 });
  launches[0]!.succeed();
  await settled();
  assertEquals([pool.state, instance(0).ids], ["ready", ["a", "b"]]);
  assertEquals(pool.status, { instances: 1, maxInstances: 1, busy: 2, queued: 0 });
  for (const run of instance(0).runs) run.finish();
  assertEquals(await Promise.all(calls.map(codeOf)), ["ok", "ok"]);
  call("c");
  await settled();
  assertEquals([instance(0).ids, launches.length, states], [["a", "b", "c"], 1, ["loading", "ready"]]);
});

Deno.test("Pool.invoke() needs no bound on the calls of an instance", async () => {
  using _clock = new FakeClock();
  const { launches, instance, call } = fakePool({ concurrency: Infinity, queue: Infinity, onLaunch: () => {} });
  const calls = ["a", "b", "c"].map((id) => call(id));
  await settled();
  launches[0]!.succeed();
  await settled();
  for (const run of instance(0).runs) run.finish();
  assertEquals([await Promise.all(calls.map(codeOf)), launches.length], [["ok", "ok", "ok"], 1]);
});

Deno.test("Pool.invoke() does not make a cancelled call wait for the start, which goes on", async () => {
  using _clock = new FakeClock();
  const { launches, instance, call } = fakePool({ onLaunch: () => {} });
  const [cancelled, patient] = [call("cancelled"), call("patient")];
  await settled();
  cancelled.abort();
  assertEquals(await codeOf(cancelled), "cancelled");
  assert(!launches[0]!.signal.aborted);
  launches[0]!.succeed();
  await settled();
  assertEquals(instance(0).ids, ["patient"]);
  instance(0).runs[0]!.finish();
  assertEquals(await codeOf(patient), "ok");
});

Deno.test("Pool.invoke() gives a call to the least busy instance", async () => {
  using _clock = new FakeClock();
  const { pool, instance, call } = fakePool({ instances: { min: 2, max: 2 }, concurrency: 3 });
  await pool.start();
  for (const id of ["a", "b", "c", "d"]) {
    call(id);
    await settled();
  }
  assertEquals([instance(0).ids, instance(1).ids], [["a", "c"], ["b", "d"]]);
  for (const run of instance(1).runs) run.finish();
  await settled();
  for (const id of ["e", "f"]) {
    call(id);
    await settled();
  }
  assertEquals([instance(0).ids, instance(1).ids], [["a", "c"], ["b", "d", "e", "f"]]);
});

Deno.test("Pool.invoke() lets calls beyond the concurrency wait, first come first served", async () => {
  using _clock = new FakeClock();
  const { pool, instance, call } = fakePool({ concurrency: 1 });
  const calls = ["a", "b", "c"].map((id) => call(id));
  await settled();
  assertEquals([instance(0).ids, pool.status.queued], [["a"], 2]);
  instance(0).runs[0]!.finish();
  await settled();
  assertEquals([instance(0).ids, pool.status.queued], [["a", "b"], 1]);
  instance(0).runs[1]!.fail(new ModelError("aborted", "no"));
  await settled();
  assertEquals([instance(0).ids, pool.status], [
    ["a", "b", "c"],
    { instances: 1, maxInstances: 1, busy: 1, queued: 0 },
  ]);
  instance(0).runs[2]!.finish();
  assertEquals(await Promise.all(calls.map(codeOf)), ["ok", "aborted", "ok"]);
  assertEquals(pool.status.busy, 0);
});

Deno.test("Pool.invoke() keeps the place of a handler that has not ended though its call has", async () => {
  using _clock = new FakeClock();
  const { pool, instance, call } = fakePool({ concurrency: 1, onLaunch: (launch) => launch.succeed().obeys = false });
  const first = call("a");
  call("b");
  await settled();
  first.abort();
  assertEquals(await codeOf(first), "cancelled");
  await settled();
  assertEquals([instance(0).ids, pool.status.busy], [["a"], 1]);
  instance(0).runs[0]!.settle();
  await settled();
  assertEquals(instance(0).ids, ["a", "b"]);
});

Deno.test("Pool.invoke() refuses calls when the queue is full", async () => {
  using _clock = new FakeClock();
  const { instance, call } = fakePool({ concurrency: 2, queue: 1 });
  call("a");
  await settled();
  for (const id of ["b", "c"]) call(id);
  const refused = await call("d").outcome;
  assertInstanceOf(refused, ModelError);
  assertEquals([refused.code, refused.message, refused.details], [
    "resource_exhausted",
    'Function "model" is busy: its 1 instances run 2 calls each (option concurrency) and 1 wait (option queue)',
    { retryAfterMs: 1000 },
  ]);
  assertEquals(instance(0).ids, ["a", "b"]);
  instance(0).runs[0]!.finish();
  await settled();
  assertEquals(instance(0).ids, ["a", "b", "c"]);
});

Deno.test("Pool.invoke() does not count those as waiting whom an instance that starts will take", async () => {
  using _clock = new FakeClock();
  const { pool, launches, instance, call } = fakePool({
    instances: { min: 0, max: 2 },
    concurrency: 2,
    queue: 0,
    onLaunch: () => {},
  });
  for (const id of ["a", "b", "c", "d"]) call(id);
  assertEquals([await codeOf(call("e")), launches.length], ["resource_exhausted", 2]);
  launches[0]!.succeed();
  await settled();
  assertEquals([instance(0).ids, pool.status.queued], [["a", "b"], 2]);
  assertEquals(await codeOf(call("f")), "resource_exhausted");
  launches[1]!.succeed();
  await settled();
  assertEquals(instance(1).ids, ["c", "d"]);
});

Deno.test("Pool.invoke() lets a call leave the queue when it aborts", async () => {
  using _clock = new FakeClock();
  const { pool, instance, call } = fakePool({ concurrency: 1, queue: 2 });
  call("a");
  await settled();
  const [second] = [call("b"), call("c")];
  await settled();
  second.abort();
  assertEquals([await codeOf(second), pool.status.queued], ["cancelled", 1]);
  instance(0).runs[0]!.finish();
  await settled();
  assertEquals(instance(0).ids, ["a", "c"]);
});

Deno.test("Pool.invoke() passes a place on that comes in the moment of the abort", async () => {
  using _clock = new FakeClock();
  const { pool, instance, call } = fakePool({ concurrency: 1 });
  call("a");
  await settled();
  const [second, third] = [call("b"), call("c")];
  await settled();
  const first = instance(0).runs[0]!;
  first.settled.then(() => second.abort()); // the pool follows it too, and has just given the place away
  first.finish();
  assertEquals(await codeOf(second), "cancelled");
  await settled();
  assertEquals(instance(0).ids, ["a", "c"]);
  instance(0).runs[1]!.finish();
  assertEquals([await codeOf(third), pool.status.busy], ["ok", 0]);
});

Deno.test("Pool.invoke() starts another instance when the others are full, up to the maximum", async () => {
  using _clock = new FakeClock();
  const { pool, launches, instance, call } = fakePool({ instances: { min: 0, max: 2 }, concurrency: 1 });
  const calls = [];
  for (const id of ["a", "b", "c"]) {
    calls.push(call(id));
    await settled();
  }
  assertEquals([launches.length, instance(0).ids, instance(1).ids, pool.status.queued], [2, ["a"], ["b"], 1]);
  assertEquals([pool.state, pool.status.instances], ["ready", 2]);
  instance(1).runs[0]!.finish();
  await settled();
  assertEquals(instance(1).ids, ["b", "c"]);
  for (const run of [...instance(0).runs, ...instance(1).runs]) run.finish();
  assertEquals(await Promise.all(calls.map(codeOf)), ["ok", "ok", "ok"]);
});

Deno.test("Pool.invoke() starts as many instances as those who wait need, not one for each", async () => {
  using _clock = new FakeClock();
  const { launches, instance, call } = fakePool({
    instances: { min: 0, max: 9 },
    concurrency: 2,
    onLaunch: () => {},
  });
  for (const id of ["a", "b", "c", "d", "e"]) call(id);
  await settled();
  assertEquals(launches.length, 3);
  for (const launch of launches) launch.succeed();
  await settled();
  assertEquals([0, 1, 2].map((index) => instance(index).ids), [["a", "b"], ["c", "d"], ["e"]]);
});

Deno.test("Pool.invoke() takes a place that comes free before the instance that it started", async () => {
  using _clock = new FakeClock();
  const { pool, launches, instance, call } = fakePool({
    instances: { min: 0, max: 2 },
    concurrency: 1,
    onLaunch: (launch, index) => index === 0 && launch.succeed(),
  });
  call("a");
  await settled();
  call("b");
  await settled();
  assertEquals(launches.length, 2);
  instance(0).runs[0]!.finish();
  await settled();
  assertEquals(instance(0).ids, ["a", "b"]);
  launches[1]!.succeed();
  await settled();
  assertEquals([instance(1).ids, pool.status.instances], [[], 2]);
});

Deno.test("Pool.invoke() frees the place of a call that cannot be handed over", async () => {
  using _clock = new FakeClock();
  const { pool, instance, call } = fakePool({ concurrency: 1 });
  await pool.start();
  const { run } = instance(0);
  instance(0).run = () => {
    throw new DOMException("It cannot be cloned", "DataCloneError");
  };
  assertEquals(`${await call("a").outcome}`, "DataCloneError: It cannot be cloned");
  assertEquals(pool.status.busy, 0);
  instance(0).run = run;
  const next = call("b");
  await settled();
  instance(0).runs[0]!.finish();
  assertEquals(await codeOf(next), "ok");
});

Deno.test("Pool.invoke() bounds a call by callTimeoutMs, its wait included", async () => {
  using clock = new FakeClock();
  const { pool, instance, call } = fakePool({ concurrency: 1, callTimeoutMs: 1000 });
  await pool.start();
  const begin = Date.now();
  const idle = clock.armed;
  const first = call("a", { deadline: begin + 600 });
  const second = call("b");
  await clock.advance(0);
  assertEquals(instance(0).runs[0]!.call.deadline, begin + 600); // its own is earlier
  await clock.advance(600);
  assertEquals(await codeOf(first), "deadline_exceeded");
  await settled();
  assertEquals(instance(0).runs[1]!.call.deadline, begin + 1000);
  await clock.advance(399);
  assert(!instance(0).runs[1]!.call.signal.aborted);
  await clock.advance(1);
  assertEquals([await codeOf(second), clock.armed], ["deadline_exceeded", idle + 1]); // the watchdog looks once more
  const third = call("c", { deadline: Date.now() + 5000 });
  await settled();
  third.abort();
  assertEquals(await codeOf(third), "cancelled");
  assertEquals(clock.armed, idle + 1);
});

Deno.test("Pool.invoke() without callTimeoutMs hands the call on as it is", async () => {
  using _clock = new FakeClock();
  const { instance, call } = fakePool();
  call("a");
  await settled();
  assertEquals(instance(0).runs[0]!.call.deadline, undefined);
});

Deno.test("Pool.start() starts the minimum, one at least, and no more when called again", async () => {
  using _clock = new FakeClock();
  for (const [instances, wanted] of [[{ min: 0, max: 3 }, 1], [{ min: 2, max: 3 }, 2]] as const) {
    const { pool, launches } = fakePool({ instances });
    await Promise.all([pool.start(), pool.start()]);
    await pool.start();
    assertEquals([launches.length, pool.status.instances, pool.state], [wanted, wanted, "ready"]);
  }
});
