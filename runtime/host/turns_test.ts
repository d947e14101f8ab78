import { assertEquals } from "tensorlet/assert";
import { Turns } from "./turns.ts";

Deno.test("Turns begin at once where nobody has one, else when the one before has ended", () => {
  const turns = new Turns();
  const begun: string[] = [];
  const take = (name: string) => turns.take(() => begun.push(name));
  const [first, second, third] = ["first", "second", "third"].map(take);
  assertEquals(begun, ["first"]);
  first!();
  first!(); // once more means nothing
  assertEquals(begun, ["first", "second"]);
  second!();
  third!();
  take("fourth");
  assertEquals(begun, ["first", "second", "third", "fourth"]);
});

Deno.test("Turns are given up before they have come", () => {
  const turns = new Turns();
  const begun: string[] = [];
  const take = (name: string) => turns.take(() => begun.push(name));
  const [first, second] = ["first", "second", "third"].map(take);
  second!();
  first!();
  assertEquals(begun, ["first", "third"]);
});

Deno.test("Turns may end while they begin", () => {
  const turns = new Turns();
  const begun: number[] = [];
  for (const i of [1, 2]) {
    turns.take((leave) => {
      begun.push(i);
      leave();
    });
  }
  assertEquals(begun, [1, 2]);
});
