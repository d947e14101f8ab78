import { assertEquals } from "tensorlet/assert";
import { acquire, FREE, isFree, isHeldBy, type LeaseState, release, renew } from "./lease_state.ts";

const LEASE = 100;
const WAIT = 20;

// What became of it after each of several questions at some time.
function ask(state: LeaseState, ...questions: readonly (readonly [token: string, now: number])[]): LeaseState {
  return questions.reduce((before, [token, now]) => acquire(before, token, now, LEASE, WAIT), state);
}

Deno.test("acquire() gives a free lease for its time", () => {
  const state = ask(FREE, ["a", 0]);
  assertEquals([isHeldBy(state, "a", 0), isHeldBy(state, "a", 99), isHeldBy(state, "a", 100)], [true, true, false]);
  assertEquals([isHeldBy(state, "b", 0), isHeldBy(FREE, "a", 0)], [false, false]);
  assertEquals(ask(state, ["a", 50]), state);
});

Deno.test("acquire() gives a lease that has run out to whoever is first in the line", () => {
  const waiting = ask(FREE, ["a", 0], ["b", 90], ["c", 91]);
  assertEquals(isHeldBy(ask(waiting, ["c", 100]), "c", 100), false);
  const next = ask(waiting, ["c", 100], ["b", 101]);
  assertEquals([isHeldBy(next, "b", 101), next.line.map(({ token }) => token)], [true, ["c"]]);
});

Deno.test("acquire() lets those leave the line who have not asked for a while", () => {
  const waiting = ask(FREE, ["a", 0], ["dead", 1], ["c", 2], ["c", 15], ["c", 30]);
  assertEquals(waiting.line.map(({ token }) => token), ["c"]);
  const state = ask(release(waiting, "a"), ["c", 31]);
  assertEquals(isHeldBy(state, "c", 31), true);
});

Deno.test("acquire() changes nothing where nothing has to be written", () => {
  const waiting = ask(FREE, ["a", 0], ["b", 1]);
  assertEquals(ask(waiting, ["b", 2]) === waiting, true);
  assertEquals(ask(waiting, ["b", 15]) === waiting, false);
});

Deno.test("renew() makes a lease last longer, but not one that has run out or is another's", () => {
  const state = ask(FREE, ["a", 0]);
  assertEquals(isHeldBy(renew(state, "a", 50, LEASE)!, "a", 149), true);
  assertEquals([renew(state, "a", 100, LEASE), renew(state, "b", 1, LEASE)], [undefined, undefined]);
});

Deno.test("release() takes a token out, wherever it is, and no other", () => {
  const state = ask(FREE, ["a", 0], ["b", 1]);
  assertEquals(release(state, "c"), state);
  assertEquals(isFree(release(release(state, "b"), "a")), true);
  assertEquals(isHeldBy(release(state, "b"), "a", 2), true);
  assertEquals(release(state, "a").line.map(({ token }) => token), ["b"]);
});
