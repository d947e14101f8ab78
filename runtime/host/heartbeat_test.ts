import { assertEquals } from "tensorlet/assert";
import { FakeClock } from "../../test/harness/clock.ts";
import { Heartbeat } from "./heartbeat.ts";

function watch(): { readonly heartbeat: Heartbeat; readonly said: string[] } {
  const said: string[] = [];
  return { heartbeat: new Heartbeat(() => said.push("?"), () => said.push("dead")), said };
}

Deno.test("Heartbeat leaves a process alone that answers now and then", async () => {
  using clock = new FakeClock();
  const { heartbeat, said } = watch();
  for (let minute = 0; minute < 10; minute++) {
    await clock.advance(59_000);
    heartbeat.heard();
  }
  assertEquals(said.includes("dead"), false);
  heartbeat.stop();
  assertEquals(clock.armed, 0);
});

Deno.test("Heartbeat finds one that says nothing for a minute, once", async () => {
  using clock = new FakeClock();
  const { heartbeat, said } = watch();
  await clock.advance(60_000);
  heartbeat.heard();
  await clock.advance(59_999);
  assertEquals(said.filter((what) => what === "dead"), []);
  await clock.advance(10_000);
  assertEquals(said.filter((what) => what === "dead"), ["dead"]);
  assertEquals(clock.armed, 0);
});
