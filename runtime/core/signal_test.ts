import { assertEquals, assertFalse, assertRejects, assertStrictEquals } from "tensorlet/assert";
import { assertFails, NEVER } from "../../test/harness/calls.ts";
import { FakeClock } from "../../test/harness/clock.ts";
import { ModelError } from "./error.ts";
import { abortable, abortReason, atDeadline, linkSignals, shuttingDown, throwIfAborted, within } from "./signal.ts";

// Counts the listeners of a signal: each one that is added must be removed.
function counted(): { readonly controller: AbortController; listeners: number } {
  const controller = new AbortController();
  const count = { controller, listeners: 0 };
  const { signal } = controller;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => (count.listeners++, add(...args));
  signal.removeEventListener = (...args: Parameters<typeof remove>) => (count.listeners--, remove(...args));
  return count;
}

Deno.test("linkSignals() aborts with any parent, with its reason", () => {
  const [a, b] = [new AbortController(), new AbortController()];
  using linked = linkSignals(a.signal, b.signal);
  assertFalse(linked.signal.aborted);
  b.abort("why");
  assertEquals(linked.signal.reason, "why");
  a.abort("later");
  assertEquals(linked.signal.reason, "why");
});

Deno.test("linkSignals() is aborted at once when a parent already is", () => {
  using linked = linkSignals(NEVER, AbortSignal.abort("before"));
  assertEquals(linked.signal.reason, "before");
});

Deno.test("linkSignals() leaves its parents alone when it aborts", () => {
  const parent = new AbortController();
  using linked = linkSignals(parent.signal);
  linked.abort("own");
  assertEquals([linked.signal.reason, parent.signal.aborted], ["own", false]);
});

Deno.test("linkSignals() unlinks when disposed", () => {
  const parent = counted();
  const linked = linkSignals(parent.controller.signal);
  assertEquals(parent.listeners, 1);
  linked[Symbol.dispose]();
  assertEquals(parent.listeners, 0);
  parent.controller.abort();
  assertFalse(linked.signal.aborted);
});

Deno.test("atDeadline() acts at the deadline, once", async () => {
  using clock = new FakeClock();
  let acts = 0;
  atDeadline(Date.now() + 50, () => acts++);
  await clock.advance(49);
  assertEquals(acts, 0);
  await clock.advance(1);
  assertEquals([acts, clock.armed], [1, 0]);
});

Deno.test("atDeadline() acts at once when the deadline has passed", async () => {
  using clock = new FakeClock();
  let acts = 0;
  atDeadline(Date.now() - 50, () => acts++);
  await clock.advance(0);
  assertEquals(acts, 1);
});

Deno.test("atDeadline() waits for deadlines that a timer cannot hold", async () => {
  using clock = new FakeClock();
  const days = 24 * 60 * 60 * 1000;
  let acts = 0;
  atDeadline(Date.now() + 100 * days, () => acts++);
  await clock.advance(100 * days - 1);
  assertEquals(acts, 0);
  await clock.advance(1);
  assertEquals(acts, 1);
});

Deno.test("atDeadline() can be taken back, also after its timer was armed again", async () => {
  using clock = new FakeClock();
  let acts = 0;
  const takeBack = atDeadline(Date.now() + 2 ** 32, () => acts++);
  await clock.advance(2 ** 31);
  takeBack();
  assertEquals(clock.armed, 0);
  await clock.advance(2 ** 32);
  assertEquals(acts, 0);
});

Deno.test("atDeadline() has one timer for all that is wanted at a moment, as long as any of it is", async () => {
  using clock = new FakeClock();
  const acts: string[] = [];
  const at = Date.now() + 50;
  const act = () => void acts.push("same");
  const takeBack = [atDeadline(at, act), atDeadline(at, act), atDeadline(at, () => acts.push("other"))];
  assertEquals(clock.armed, 1);
  takeBack[0]!();
  takeBack[0]!();
  await clock.advance(50);
  assertEquals([acts, clock.armed], [["same", "other"], 0]);
  atDeadline(at, act)(); // the moment has passed, and is there again for whoever still asks for it
  assertEquals(clock.armed, 0);
});

Deno.test("abortable() settles as the promise does and takes its listener back", async () => {
  const parent = counted();
  const { signal } = parent.controller;
  assertEquals(await abortable(Promise.resolve(3), signal), 3);
  await assertRejects(() => abortable(Promise.reject(new RangeError("no")), signal), RangeError, "no");
  assertEquals(parent.listeners, 0);
});

Deno.test("abortable() rejects at once when the signal aborts", async () => {
  const controller = new AbortController();
  const waiting = abortable(new Promise(() => {}), controller.signal);
  const reason = new ModelError("unavailable", "gone");
  controller.abort(reason);
  assertStrictEquals(await waiting.catch((error) => error), reason);
  await assertFails("unavailable", "gone", () => abortable(Promise.resolve(1), controller.signal));
});

Deno.test("abortable() takes care of a promise that rejects after the abort", async () => {
  const controller = new AbortController();
  const { promise, reject } = Promise.withResolvers<void>();
  const waiting = abortable(promise, controller.signal);
  controller.abort();
  await assertFails("cancelled", "cancelled", () => waiting);
  reject(new Error("too late")); // would end the process if nobody heard it
});

Deno.test("abortReason() makes a cancel of a caller's own reason and a deadline of a timeout", () => {
  const own = new ModelError("unavailable", "x");
  assertStrictEquals(abortReason(AbortSignal.abort(own)), own);
  const cancel = abortReason(AbortSignal.abort("bored"));
  assertEquals([cancel.code, cancel.cause], ["cancelled", "bored"]);
  const timeout = new DOMException("x", "TimeoutError");
  assertEquals(abortReason(AbortSignal.abort(timeout)).code, "deadline_exceeded");
  assertEquals(abortReason(AbortSignal.abort()).code, "cancelled");
});

Deno.test("throwIfAborted() throws only when the signal is aborted", async () => {
  throwIfAborted(NEVER);
  await assertFails("cancelled", "The client cancelled the call", () => throwIfAborted(AbortSignal.abort()));
});

Deno.test("abortable() follows its promise though the signal has aborted: no failure is left unhandled", async () => {
  const failing = Promise.reject(new Error("later"));
  await assertFails("cancelled", "", () => abortable(failing, AbortSignal.abort()));
});

Deno.test("within() says whether a promise resolved in time", async () => {
  assertEquals(await within(10_000, Promise.resolve()), true);
  assertEquals(await within(0, new Promise(() => {})), false);
});

Deno.test("shuttingDown() says when to try again", () => {
  assertEquals([shuttingDown().code, shuttingDown().details], ["unavailable", { retryAfterMs: 1000 }]);
});
