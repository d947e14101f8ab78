import { assertEquals } from "tensorlet/assert";
import { FakeClock, settled } from "../../test/harness/clock.ts";
import { codeOf, fakePool } from "../../test/harness/fake_pool.ts";
import type { Call } from "../core/call.ts";
import { ModelError } from "../core/error.ts";
import type { Observer } from "../core/observer.ts";

function recorder(): { readonly observer: Observer; readonly events: string[] } {
  const events: string[] = [];
  const ids = (calls: readonly Call[]) => calls.map(({ id }) => id).join(",");
  const observer: Observer = {
    onStart: ({ id }, { name, version }) => events.push(`start ${name}@${version} ${id}`),
    onEnd: ({ id }, _model, _ms, { how }) => events.push(`end ${id} ${how}`),
    onLoaded: (_model, _ms, waiting) => events.push(`loaded for ${ids(waiting)}`),
    onLoadFailed: (_model, _ms, reason, waiting) => events.push(`${(reason as Error).message} for ${ids(waiting)}`),
    onDied: (_model, { message }) => events.push(message),
  };
  return { observer, events };
}

Deno.test("Pool tells its observer of a start and the calls that waited for it, then of these", async () => {
  using _clock = new FakeClock();
  const { observer, events } = recorder();
  const { launches, instance, call } = fakePool({ observer, onLaunch: () => {} });
  const calls = [call("a"), call("b")];
  await settled();
  assertEquals(events, []);
  launches[0]!.succeed();
  await settled();
  assertEquals(events.splice(0), ["loaded for a,b", "start model@1 a", "start model@1 b"]);
  instance(0).runs[0]!.finish();
  await codeOf(calls[0]!);
  instance(0).runs[1]!.fail(new ModelError("internal", "It broke"));
  await codeOf(calls[1]!);
  assertEquals(events, ["end a completed", "end b failed"]);
});

Deno.test("Pool tells its observer of a start that failed, and nothing of calls that never had an instance", async () => {
  using _clock = new FakeClock();
  const { observer, events } = recorder();
  const { call } = fakePool({ observer, onLaunch: (launch) => launch.fail() });
  assertEquals(await codeOf(call("a")), "unavailable");
  assertEquals(events, ["no weights for a"]);
});

Deno.test("Pool tells its observer of an instance that died or was ended, not of one that has ended as it should", async () => {
  using _clock = new FakeClock();
  const { observer, events } = recorder();
  const { pool, instance } = fakePool({ observer, instances: { min: 2, max: 2 }, warm: true });
  await pool.start();
  events.length = 0;
  instance(0).crash();
  instance(1).kill(new ModelError("unavailable", "It was killed"));
  await settled();
  assertEquals(events, ["It crashed", "It was killed", "loaded for ", "loaded for "]);
  events.length = 0;
  await pool.close();
  assertEquals(events, []);
});

Deno.test("Pool tells how many of its instances do what", async () => {
  using _clock = new FakeClock();
  const { pool, launches, call } = fakePool({ instances: { min: 0, max: 3 }, concurrency: 1, onLaunch: () => {} });
  call("a");
  call("b");
  await settled();
  assertEquals(pool.instanceStates, { idle: 0, busy: 0, loading: 2 });
  launches[0]!.succeed();
  await settled();
  assertEquals(pool.instanceStates, { idle: 0, busy: 1, loading: 1 });
  launches[0]!.instance.runs[0]!.finish();
  launches[1]!.succeed();
  await settled();
  assertEquals(pool.instanceStates, { idle: 1, busy: 1, loading: 0 });
});
