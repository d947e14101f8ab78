import { assertEquals } from "tensorlet/assert";
import { codeOf, fakePool, type FakePoolOptions } from "../../test/harness/fake_pool.ts";
import { FakeClock, settled } from "../../test/harness/clock.ts";

/** A pool with a call in progress, in an instance that answers a probe when told to. */
async function withCall(options: FakePoolOptions = {}) {
  const fake = fakePool({ concurrency: 2, idleMs: Infinity, ...options });
  const first = fake.call("a");
  await settled();
  const probe = Promise.withResolvers<boolean>();
  fake.instance(0).isFree = probe.promise;
  return { ...fake, first, probe };
}

Deno.test("Watchdog lets another instance take the place of one that holds its event loop", async () => {
  using clock = new FakeClock();
  const { instance, first, probe, call, pool } = await withCall({ warm: true });
  await clock.advance(4_999);
  assertEquals(instance(0).probes, []);
  await clock.advance(1);
  assertEquals([instance(0).probes, instance(0).killed], [[60_000], undefined]);
  probe.resolve(false);
  assertEquals(await codeOf(first), "unavailable");
  call("b");
  await settled();
  assertEquals([instance(1).ids, pool.status.instances, pool.state], [["b"], 1, "ready"]);
});

Deno.test("Watchdog gives an event loop as long as a call may take", async () => {
  using clock = new FakeClock();
  const { instance } = await withCall({ callTimeoutMs: 700_000 });
  await clock.advance(5_000);
  assertEquals(instance(0).probes, [700_000]);
});

Deno.test("Watchdog asks once at a time, and again after the answer", async () => {
  using clock = new FakeClock();
  const { instance, probe, first } = await withCall();
  await clock.advance(20_000);
  assertEquals(instance(0).probes.length, 1);
  probe.resolve(true);
  await clock.advance(10_000);
  assertEquals([instance(0).probes.length, instance(0).killed], [3, undefined]);
  instance(0).runs[0]!.finish();
  assertEquals(await codeOf(first), "ok");
});

Deno.test("Watchdog asks nobody while no call runs", async () => {
  using clock = new FakeClock();
  const { instance, first, call } = await withCall();
  instance(0).runs[0]!.finish();
  await first.outcome;
  await clock.advance(30_000);
  assertEquals([instance(0).probes, clock.armed], [[], 0]);
  call("b");
  await clock.advance(5_000);
  assertEquals(instance(0).probes.length, 1);
});

Deno.test("Watchdog asks no instance that shares the server's event loop, and none that leaves already", async () => {
  using clock = new FakeClock();
  const shared = await withCall({ onLaunch: (launch) => void (launch.succeed().isolated = false) });
  await clock.advance(30_000);
  assertEquals([shared.instance(0).probes, clock.armed], [[], 0]);

  const leaving = await withCall({ graceMs: 1_000, onLaunch: (launch) => launch.succeed().obeys = false });
  leaving.call("b");
  await settled();
  leaving.first.abort();
  leaving.probe.resolve(true);
  await clock.advance(8_000);
  assertEquals([leaving.instance(0).probes, leaving.instance(0).killed], [[1_000], undefined]); // the grace time's own
});

Deno.test("Watchdog leaves no timer behind a pool that is closed", async () => {
  using clock = new FakeClock();
  const { pool, instance, first } = await withCall();
  const closing = pool.close();
  instance(0).runs[0]!.finish();
  await first.outcome;
  await closing;
  assertEquals(clock.armed, 0);
});
