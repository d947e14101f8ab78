import { assert, assertEquals, assertInstanceOf, assertRejects, assertStrictEquals } from "tensorlet/assert";
import { codeOf, type FakePool, fakePool } from "../../test/harness/fake_pool.ts";
import { FakeClock, settled } from "../../test/harness/clock.ts";
import { ModelError } from "../core/error.ts";

const errors = ({ records }: FakePool) => records.filter(({ level }) => level === "error");

async function failureOf(fake: FakePool, id = "a"): Promise<ModelError> {
  const failure = await fake.call(id).outcome;
  assertInstanceOf(failure, ModelError);
  assertEquals(failure.code, "unavailable");
  return failure;
}

Deno.test("Pool.invoke() is unavailable when the start fails, says when to try again, and waits longer each time", async () => {
  using clock = new FakeClock();
  const cause = new Error("no weights");
  const fake = fakePool({ onLaunch: (launch, index) => index < 8 ? launch.fail(cause) : launch.succeed() });
  for (const [index, seconds] of [1, 2, 4, 8, 16, 32, 60, 60].entries()) {
    const { message, details, cause: reason } = await failureOf(fake);
    assertEquals(message, 'Function "model" cannot be loaded; the server\'s log says why');
    assertEquals([details, reason], [{ retryAfterMs: seconds * 1000 }, undefined]);
    assertEquals([fake.pool.state, fake.launches.length], ["failed", index + 1]);
    const { message: logged, fields } = errors(fake)[index]!;
    assertEquals([logged, fields], [
      "Cannot load the function",
      { version: "1", retryMs: seconds * 1000, cause },
    ]);
    await clock.advance(seconds * 1000 - 1);
    assertEquals((await failureOf(fake)).details, { retryAfterMs: 1 }); // refused at once
    await clock.advance(1);
    assertEquals([fake.launches.length, fake.pool.state], [index + 1, "failed"]); // nothing starts by itself
  }
  const call = fake.call("a");
  await settled();
  fake.instance(8).runs[0]!.finish();
  assertEquals([await codeOf(call), fake.pool.state], ["ok", "ready"]);
});

Deno.test("Pool.invoke() begins with the shortest pause again once a call was served", async () => {
  using clock = new FakeClock();
  const fake = fakePool({ idleMs: 5000, onLaunch: (launch, index) => index === 2 ? launch.succeed() : launch.fail() });
  await failureOf(fake);
  await clock.advance(1000);
  await failureOf(fake);
  await clock.advance(2000);
  const served = fake.call("a");
  await settled();
  fake.instance(2).runs[0]!.finish();
  assertEquals(await codeOf(served), "ok");
  await clock.advance(5000); // ends idle
  assertEquals((await failureOf(fake)).details, { retryAfterMs: 1000 });
});

Deno.test("Pool.invoke() refuses every call that waits for a start that fails", async () => {
  using _clock = new FakeClock();
  const fake = fakePool({ onLaunch: () => {} });
  const calls = ["a", "b"].map((id) => fake.call(id));
  await settled();
  fake.launches[0]!.fail();
  assertEquals([await Promise.all(calls.map(codeOf)), fake.pool.status.queued], [["unavailable", "unavailable"], 0]);
  assertEquals(fake.states, ["loading", "failed"]);
});

Deno.test("Pool.invoke() takes a start that throws for one that fails", async () => {
  using _clock = new FakeClock();
  const fake = fakePool({
    onLaunch() {
      throw new TypeError("no such permission");
    },
  });
  await failureOf(fake);
  assertEquals([fake.pool.state, errors(fake).map(({ fields }) => `${fields.cause}`)], [
    "failed",
    ["TypeError: no such permission"],
  ]);
});

Deno.test("Pool.start() rejects when it cannot load, and leaves the state as it is while it must not try", async () => {
  using _clock = new FakeClock();
  const fake = fakePool({ onLaunch: (launch) => launch.fail() });
  const error = await assertRejects(() => fake.pool.start(), ModelError, "cannot be loaded");
  assertEquals([error.code, `${error.cause}`], ["unavailable", "Error: no weights"]);
  await assertRejects(() => fake.pool.start(), ModelError, "cannot be loaded");
  assertEquals([fake.states, fake.launches.length], [["loading", "failed"], 1]);
});

Deno.test("Pool ends a start that takes too long, and the instance that comes too late", async () => {
  using clock = new FakeClock();
  const fake = fakePool({ loadTimeoutMs: 500, graceMs: 70, onLaunch: () => {} });
  const call = fake.call("a");
  await clock.advance(499);
  assert(!fake.launches[0]!.signal.aborted);
  await clock.advance(1);
  assertEquals(await codeOf(call), "unavailable");
  const { reason } = fake.launches[0]!.signal;
  assertEquals(reason.message, "It took more than 500 ms (loadTimeoutMs)");
  assertStrictEquals(errors(fake)[0]?.fields.cause, reason);
  assertEquals(fake.pool.state, "failed");
  const late = fake.launches[0]!.succeed();
  await settled();
  assertEquals([late.closed, fake.pool.state, fake.pool.status.instances], [[70], "failed", 0]);
});

Deno.test("Pool disarms the time of a start that succeeds or fails", async () => {
  using clock = new FakeClock();
  const { pool } = fakePool({ idleMs: Infinity });
  await pool.start();
  assertEquals(clock.armed, 0);
  await failureOf(fakePool({ onLaunch: (launch) => launch.fail() }));
  assertEquals(clock.armed, 0);
});

Deno.test("Pool tries again by itself where an instance must be kept: health keeps the calls away", async () => {
  for (const options of [{ warm: true }, { instances: { min: 1, max: 1 } }]) {
    using clock = new FakeClock();
    const fake = fakePool({ ...options, onLaunch: (launch, index) => index < 2 ? launch.fail() : launch.succeed() });
    await fake.pool.start().catch(() => {});
    assertEquals([fake.launches.length, clock.armed], [1, 1]);
    await clock.advance(1000);
    assertEquals([fake.launches.length, fake.pool.state], [2, "failed"]);
    await clock.advance(1999);
    assertEquals(fake.launches.length, 2);
    await clock.advance(1);
    assertEquals([fake.launches.length, fake.pool.state, clock.armed], [3, "ready", 0]);
    assertEquals(fake.states, ["loading", "failed", "loading", "failed", "loading", "ready"]);
  }
});

Deno.test("Pool does not try again by itself beside a start that a call has begun", async () => {
  using clock = new FakeClock();
  const fake = fakePool({ warm: true, onLaunch: (launch, index) => index === 0 && launch.fail() });
  await fake.pool.start().catch(() => {});
  const now = Date.now();
  Date.now = () => now + 1000; // the timer is late
  fake.call("a");
  await settled();
  assertEquals(fake.launches.length, 2);
  await clock.advance(1000);
  assertEquals(fake.launches.length, 2);
});

Deno.test("Pool stays ready when one more instance cannot be started, and serves who waits with those it has", async () => {
  using clock = new FakeClock();
  const fake = fakePool({
    instances: { min: 0, max: 2 },
    concurrency: 1,
    onLaunch: (launch, index) => index === 1 ? launch.fail() : launch.succeed(),
  });
  const first = fake.call("a");
  await settled();
  const second = fake.call("b");
  await settled();
  assertEquals([fake.launches.length, fake.pool.state, fake.pool.status.queued], [2, "ready", 1]);
  const third = fake.call("c");
  await settled();
  assertEquals(fake.launches.length, 2); // not before the pause is over
  fake.instance(0).runs[0]!.finish();
  await settled();
  assertEquals([await codeOf(first), fake.instance(0).ids], ["ok", ["a", "b"]]);
  await clock.advance(1000);
  fake.call("d");
  await settled();
  assertEquals([fake.launches.length, fake.instance(2).ids], [3, ["c"]]);
  for (const { instance } of fake.launches) for (const run of instance.runs) run.finish();
  assertEquals([await codeOf(second), await codeOf(third)], ["ok", "ok"]);
});

Deno.test("Pool gives the calls of an instance that dies its failure, and those behind them a new instance", async () => {
  using _clock = new FakeClock();
  const fake = fakePool({ concurrency: 2 });
  const calls = ["a", "b", "c"].map((id) => fake.call(id));
  await settled();
  fake.instance(0).crash("An instance crashed");
  const [lost] = [await calls[0]!.outcome, await calls[1]!.outcome];
  assert(lost instanceof ModelError && lost.code === "unavailable" && lost.message === "An instance crashed");
  await settled();
  assertEquals([fake.launches.length, fake.instance(1).ids, fake.pool.status.busy], [2, ["c"], 1]);
  const [{ message, fields }] = errors(fake) as [ReturnType<typeof errors>[0]];
  assertEquals([message, fields.version, `${fields.cause}`], ["An instance crashed", "1", "Error: segfault"]);
  fake.instance(1).runs[0]!.finish();
  assertEquals(await codeOf(calls[2]!), "ok");
});

Deno.test("Pool replaces an instance that dies at once where it is to be kept, else on the next call", async () => {
  using _clock = new FakeClock();
  const kept = fakePool({ instances: { min: 2, max: 2 } });
  await kept.pool.start();
  kept.instance(1).crash();
  await settled();
  assertEquals([kept.launches.length, kept.pool.status.instances, kept.states], [3, 2, ["loading", "ready"]]);

  const warm = fakePool({ warm: true });
  await warm.pool.start();
  warm.instance(0).crash();
  await settled();
  assertEquals([warm.launches.length, warm.states], [2, ["loading", "ready", "loading", "ready"]]);

  const cold = fakePool();
  await cold.pool.start();
  cold.instance(0).crash();
  await settled();
  assertEquals([cold.launches.length, cold.states], [1, ["loading", "ready", "registered"]]);
  cold.call("a");
  await settled();
  assertEquals([cold.launches.length, cold.instance(1).ids], [2, ["a"]]);
});

Deno.test("Pool fails when its instances die one after the other without serving a call, and recovers", async () => {
  using clock = new FakeClock();
  const fake = fakePool();
  for (let i = 0; i < 3; i++) {
    assert(fake.pool.state !== "failed");
    const call = fake.call("a");
    await settled();
    fake.instance(i).crash();
    assertEquals(await codeOf(call), "unavailable");
    await settled();
  }
  assertEquals(fake.pool.state, "failed");
  assertEquals(errors(fake).map(({ message, fields }) => [message, fields.retryMs]), [
    ["It crashed", undefined],
    ["It crashed", undefined],
    ["The function keeps dying", 4000],
  ]);
  const refused = await failureOf(fake);
  assertEquals([refused.message, refused.details], [
    'Function "model" keeps dying; the server\'s log says why',
    { retryAfterMs: 4000 },
  ]);
  await clock.advance(4000);
  fake.call("b");
  await settled();
  fake.instance(3).crash();
  await settled();
  assertEquals((await failureOf(fake)).details, { retryAfterMs: 8000 });
  await clock.advance(8000);
  const served = fake.call("c");
  await settled();
  fake.instance(4).runs[0]!.finish();
  assertEquals([await codeOf(served), fake.pool.state], ["ok", "ready"]);
  fake.instance(4).crash();
  await settled();
  assertEquals([fake.pool.state, fake.launches.length], ["registered", 5]); // it had served a call: counts no more
});

Deno.test("Pool refuses who waits when its instances keep dying", async () => {
  using _clock = new FakeClock();
  const fake = fakePool({ concurrency: 1 });
  const calls = ["a", "b", "c", "d", "e"].map((id) => fake.call(id));
  for (let i = 0; i < 3; i++) {
    await settled();
    fake.instance(i).crash();
  }
  const texts = (await Promise.all(calls.map(({ outcome }) => outcome))).map((error) => (error as ModelError).message);
  const dying = 'Function "model" keeps dying; the server\'s log says why';
  assertEquals(texts, ["It crashed", "It crashed", "It crashed", dying, dying]);
  assertEquals(fake.pool.status, { instances: 0, maxInstances: 1, busy: 0, queued: 0 });
});

Deno.test("Pool that keeps an instance tries again by itself after its instances kept dying", async () => {
  using clock = new FakeClock();
  const fake = fakePool({ warm: true });
  await fake.pool.start();
  for (let i = 0; i < 3; i++) {
    fake.instance(i).crash();
    await settled();
  }
  assertEquals([fake.launches.length, fake.pool.state], [3, "failed"]);
  await clock.advance(4000);
  assertEquals([fake.launches.length, fake.pool.state], [4, "ready"]);
});

Deno.test("Pool starts again for those who wait when an instance dies as it starts", async () => {
  using _clock = new FakeClock();
  const fake = fakePool({
    concurrency: 1,
    onLaunch(launch, index) {
      launch.succeed();
      if (index === 0) launch.instance.crash();
    },
  });
  const calls = ["a", "b"].map((id) => fake.call(id));
  await settled();
  assertEquals([await codeOf(calls[0]!), fake.launches.length, fake.instance(1).ids], ["unavailable", 2, ["b"]]);
});

Deno.test("Pool does not wait for an instance that has gone while its successor could not be started", async () => {
  using clock = new FakeClock();
  const fake = fakePool({
    concurrency: 1,
    graceMs: 100,
    onLaunch: (launch, index) => index === 0 ? launch.succeed().obeys = false : launch.fail(),
  });
  const stuck = fake.call("a");
  const waiting = fake.call("b");
  await settled();
  stuck.abort();
  fake.instance(0).isFree = false;
  await clock.advance(100);
  assertEquals([await codeOf(waiting), fake.pool.state, fake.pool.status.instances], ["unavailable", "failed", 0]);
});
