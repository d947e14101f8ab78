import { assertEquals } from "tensorlet/assert";
import { FakeClock } from "../../../test/harness/clock.ts";
import { DEFAULT_KEEPALIVE, Keepalive, type KeepaliveTimes } from "./keepalive.ts";

function watch(times: KeepaliveTimes = DEFAULT_KEEPALIVE): { readonly keepalive: Keepalive; readonly said: string[] } {
  const said: string[] = [];
  const began = Date.now();
  const say = (what: string) => () => void said.push(`${what} ${(Date.now() - began) / 1000}`);
  return { keepalive: new Keepalive({ ...times, ping: say("ping"), onDead: say("dead") }), said };
}

Deno.test("Keepalive finds a silent peer within a minute, wherever between two pings it went silent", async () => {
  using clock = new FakeClock();
  for (const lastSign of [0, 1, 15_000, 29_999]) {
    const { keepalive, said } = watch();
    await clock.advance(lastSign);
    keepalive.heard();
    await clock.advance(60_000);
    assertEquals(said, [`ping ${(lastSign + 30_000) / 1000}`, `dead ${(lastSign + 50_000) / 1000}`]);
    assertEquals(clock.armed, 0);
  }
});

Deno.test("Keepalive leaves a peer alone that answers its pings", async () => {
  using clock = new FakeClock();
  const { keepalive, said } = watch();
  for (let pings = 1; pings <= 5; pings++) {
    await clock.advance(30_000);
    assertEquals(said.length, pings);
    await clock.advance(0);
    keepalive.heard();
    await clock.advance(20_000);
    keepalive.heard(); // the next ping is due 30 s after the last sign
  }
  assertEquals(said, ["ping 30", "ping 80", "ping 130", "ping 180", "ping 230"]);
  keepalive.stop();
});

Deno.test("Keepalive counts from the last sign on, also where an answer may take longer than the silence", async () => {
  using clock = new FakeClock();
  const { keepalive, said } = watch({ keepaliveMs: 10_000, keepaliveTimeoutMs: 60_000 });
  await clock.advance(11_000);
  keepalive.heard();
  await clock.advance(80_000);
  assertEquals(said, ["ping 10", "ping 21", "dead 81"]);
});

Deno.test("Keepalive does not ping a peer that sends", async () => {
  using clock = new FakeClock();
  const { keepalive, said } = watch();
  for (let i = 0; i < 20; i++) {
    await clock.advance(29_999);
    keepalive.heard();
  }
  assertEquals(said, []);
  keepalive.stop();
});

Deno.test("Keepalive takes anything that comes as an answer: the real one may wait behind an upload", async () => {
  using clock = new FakeClock();
  const { keepalive, said } = watch();
  await clock.advance(49_999);
  keepalive.heard();
  await clock.advance(49_999);
  assertEquals(said, ["ping 30", "ping 79.999"]);
  keepalive.stop();
});

Deno.test("Keepalive asks again when the event loop was held: the answer may be there, not read yet", async () => {
  using clock = new FakeClock();
  const { keepalive, said } = watch();
  await clock.advance(30_000);
  const held = Date.now() + 25_000;
  const real = Date.now;
  Date.now = () => Math.max(real(), held); // the timer of 20 s comes 5 s late
  await clock.advance(20_000);
  Date.now = real;
  await clock.advance(5_000);
  assertEquals(said, ["ping 30", "ping 55"]);
  keepalive.heard();
  await clock.advance(20_000);
  assertEquals(said.length, 2);
  keepalive.stop();
});

Deno.test("Keepalive without an interval never pings, and leaves no timer once it is stopped", async () => {
  using clock = new FakeClock();
  const { keepalive, said } = watch({ ...DEFAULT_KEEPALIVE, keepaliveMs: Infinity });
  await clock.advance(86_400_000);
  assertEquals(said, []);
  keepalive.stop();
  keepalive.heard();
  assertEquals(clock.armed, 0);
});
