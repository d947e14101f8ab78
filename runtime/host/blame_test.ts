import { assertEquals, assertStringIncludes } from "tensorlet/assert";
import { FakeClock } from "../../test/harness/clock.ts";
import { Blame } from "./blame.ts";

const MINUTE_MS = 60_000;

Deno.test("Blame moves a function to a process at two strikes, and gives it up at three", () => {
  const blame = new Blame();
  blame.strike(["a", "b"]);
  assertEquals(blame.verdicts(), {});
  blame.strike(["a"]);
  const { a, ...others } = blame.verdicts();
  assertEquals([a?.isolation, a?.failed, others], ["process", undefined, {}]);
  assertStringIncludes(a!.why, "ended 2 times within 10 minutes");
  blame.strike(["a", "a"]);
  assertEquals([blame.verdicts().a?.failed, Object.keys(blame.verdicts())], [true, ["a"]]);
});

Deno.test("Blame forgets strikes after ten minutes", async () => {
  using clock = new FakeClock();
  const blame = new Blame();
  blame.strike(["a"]);
  await clock.advance(6 * MINUTE_MS);
  blame.strike(["a"]);
  assertEquals(Object.keys(blame.verdicts()), ["a"]);
  await clock.advance(5 * MINUTE_MS);
  assertEquals(blame.verdicts(), {});
});

Deno.test("Blame starts anew where the files are other ones", () => {
  const blame = new Blame();
  blame.strike(["a"], { a: "one" });
  blame.strike(["a"], { a: "two" });
  assertEquals(blame.verdicts(), {});
  blame.strike(["a"], { a: "two" });
  assertEquals(blame.verdicts().a?.fingerprint, "two");
  blame.forgive("a");
  assertEquals(blame.verdicts(), {});
});
