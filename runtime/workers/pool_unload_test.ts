import { assertEquals } from "tensorlet/assert";
import { codeOf, fakePool } from "../../test/harness/fake_pool.ts";
import { settled } from "../../test/harness/clock.ts";

Deno.test("Pool.unload() ends idle instances at once, and others when their calls have ended", async () => {
  await using fake = fakePool({ concurrency: 1, instances: { min: 2, max: 2 }, warm: true });
  const { pool, instance, launches, states } = fake;
  await pool.start();
  const running = fake.call("running");
  await settled();
  pool.unload();
  await settled();
  assertEquals([instance(0).closed.length, instance(1).closed.length, pool.state], [0, 1, "ready"]);
  assertEquals(await codeOf(fake.call("late")), "unavailable");
  instance(0).runs[0]!.finish();
  assertEquals(await codeOf(running), "ok");
  await settled();
  assertEquals([instance(0).closed.length, launches.length, pool.state], [1, 2, "unloaded"]);
  assertEquals(states, ["loading", "ready", "unloaded"]);
});

Deno.test("Pool.start() takes an unloaded function into service again", async () => {
  await using fake = fakePool();
  fake.pool.unload();
  assertEquals([fake.pool.state, await codeOf(fake.call("refused"))], ["unloaded", "unavailable"]);
  await fake.pool.start();
  const call = fake.call("taken");
  await settled();
  fake.instance(0).runs[0]!.finish();
  assertEquals([await codeOf(call), fake.pool.state], ["ok", "ready"]);
});

Deno.test("Pool.unload() answers the calls that wait for a start, and keeps no instance after them", async () => {
  await using fake = fakePool({ onLaunch: () => {} });
  const waiting = fake.call("waiting");
  await settled();
  fake.pool.unload();
  fake.launches[0]!.succeed();
  await settled();
  fake.instance(0).runs[0]!.finish();
  assertEquals(await codeOf(waiting), "ok");
  await settled();
  assertEquals([fake.instance(0).closed.length, fake.pool.state], [1, "unloaded"]);
});

Deno.test("Pool.unload() ends an instance that comes when nobody waits for it any more", async () => {
  await using fake = fakePool({ onLaunch: () => {} });
  const starting = fake.pool.start();
  fake.pool.unload();
  fake.launches[0]!.succeed();
  await starting;
  await settled();
  assertEquals([fake.instance(0).closed.length, fake.pool.state], [1, "unloaded"]);
});

Deno.test("Pool does not replace an instance of an unloaded function that dies", async () => {
  await using fake = fakePool({ warm: true });
  await fake.pool.start();
  const running = fake.call("running");
  await settled();
  fake.pool.unload();
  fake.instance(0).crash();
  assertEquals(await codeOf(running), "unavailable");
  await settled();
  assertEquals([fake.launches.length, fake.pool.state], [1, "unloaded"]);
});
