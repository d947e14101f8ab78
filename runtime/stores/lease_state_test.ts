import { assertEquals } from "tensorlet/assert";
import { isHeldBy, isNext } from "./lease_state.ts";

const waiter = (token: string, since: number, until = 100) => ({ token, since, until });

Deno.test("isHeldBy() tells whose a lease is, until it has run out", () => {
  const holder = { token: "a", until: 100 };
  assertEquals([isHeldBy(holder, "a", 99), isHeldBy(holder, "a", 100), isHeldBy(holder, "b", 0)], [true, false, false]);
  assertEquals([isHeldBy(undefined, "a", 0), isHeldBy(null, "a", 0)], [false, false]);
});

Deno.test("isNext() gives a lease to nobody while it is held, and to anybody when nobody waits", () => {
  const holder = { token: "a", until: 100 };
  assertEquals([isNext(holder, [], "b", 99), isNext(holder, [waiter("b", 1)], "b", 99)], [false, false]);
  assertEquals([isNext(holder, [], "b", 100), isNext(undefined, [], "b", 0)], [true, true]);
});

Deno.test("isNext() gives a free lease to who has waited longest", () => {
  const line = [waiter("c", 2), waiter("b", 1), waiter("d", 2)];
  assertEquals(["b", "c", "d", "new"].map((token) => isNext(null, line, token, 50)), [true, false, false, false]);
  assertEquals(isNext(null, [waiter("c", 2), waiter("d", 2)], "c", 50), true);
});

Deno.test("isNext() passes over who has not asked for a while", () => {
  const line = [waiter("dead", 1, 50), waiter("b", 2)];
  assertEquals([isNext(null, line, "b", 49), isNext(null, line, "b", 50)], [false, true]);
  assertEquals(isNext(null, [waiter("late", 1, 50)], "late", 60), true);
});
