import { assertEquals } from "tensorlet/assert";
import { assertFails, chatCall, collect, executorOf, predictCall, textsOf } from "../../test/harness/calls.ts";
import { FakeClock, settled } from "../../test/harness/clock.ts";
import { BOUNDS, contents, conversation, endings } from "../../test/harness/conversation.ts";
import type { ChatMessage, Invoke } from "../core/call.ts";
import { defineModel } from "../core/define.ts";
import { ModelError } from "../core/error.ts";
import type { Sessions } from "./session.ts";
import { trimHistory } from "./session_turn.ts";

async function exists(sessions: Sessions, version: string | undefined, id: string): Promise<boolean> {
  const release = await sessions.holdExisting("model", version, id);
  release?.();
  return release !== undefined;
}

Deno.test("Sessions gives a turn what the turns before it left", async () => {
  using _clock = new FakeClock();
  const { say, seen, stored } = conversation();
  assertEquals(await say("a"), ["re: a"]);
  await say("b");
  assertEquals(seen, [undefined, {
    id: "s",
    turn: 1,
    history: [{ role: "user", content: "a" }, { role: "assistant", content: "re: a" }],
    state: 1,
  }]);
  const after = await stored();
  assertEquals([after?.turn, after?.state, contents(after?.history)], [2, 2, ["a", "re: a", "b", "re: b"]]);
});

Deno.test("Sessions keeps sessions apart, by id and by function", async () => {
  using _clock = new FakeClock();
  const { say, seen, sessions } = conversation();
  for (const id of ["a", "b", "__proto__", ""]) await say("x", id);
  await say("x", "a", { model: "other" });
  assertEquals(seen, [undefined, undefined, undefined, undefined, undefined]);
  assertEquals(
    [sessions.size, await exists(sessions, undefined, "__proto__"), await exists(sessions, undefined, "c")],
    [5, true, false],
  );
});

Deno.test("Sessions lets calls of other kinds through", async () => {
  const { sessions } = conversation();
  const next: Invoke = async function* () {
    yield { type: "session", state: 1 };
  };
  assertEquals(await collect(sessions.interceptor(next)(predictCall())), [{ type: "session", state: 1 }]);
});

Deno.test("Sessions answers the turns of one session one at a time, in order of arrival", async () => {
  using _clock = new FakeClock();
  const { say, seen, stored, openGate } = conversation();
  const turns = [say("wait"), say("b"), say("c")];
  await settled();
  assertEquals(seen.length, 1);
  await say("x", "other"); // of another session: not held up
  openGate();
  await Promise.all(turns);
  assertEquals(contents((await stored())?.history).filter((text) => !text.startsWith("re")), ["wait", "b", "c"]);
});

Deno.test("Sessions has stored a turn before its last piece leaves", async () => {
  using _clock = new FakeClock();
  const { sessions, stored } = conversation();
  const next: Invoke = async function* () {
    yield { type: "session", state: 5 };
    yield { type: "delta", index: 0, text: "all", final: true };
  };
  for await (const reply of sessions.interceptor(next)(chatCall("a", { sessionId: "s" }))) {
    assertEquals(reply.type, "delta");
    const after = await stored();
    assertEquals([after?.state, contents(after?.history)], [5, ["a", "all"]]);
    break;
  }
  assertEquals((await stored())?.turn, 1);
});

Deno.test("Sessions keeps what an interrupted turn said, marked so, and not its state", async () => {
  using _clock = new FakeClock();
  const { say, stored, invoke } = conversation();
  await say("a");
  const controller = new AbortController();
  const cut = say("wait", "s", { signal: controller.signal }).catch((error) => error.code);
  await settled();
  controller.abort();
  assertEquals(await cut, "cancelled");
  await assertFails("aborted", "broke", () => say("break"));
  for await (const _ of invoke(chatCall("left", { sessionId: "s" }))) break;
  const after = await stored();
  assertEquals([after?.turn, after?.state], [4, 1]);
  assertEquals(after?.history.filter(({ role }) => role === "assistant"), [
    { role: "assistant", content: "re: a" },
    { role: "assistant", content: "re: wait", interrupted: true },
    { role: "assistant", content: "re: break", interrupted: true },
    { role: "assistant", content: "re: left", interrupted: true },
  ]);
});

Deno.test("Sessions begins with a fresh state after a first turn that was interrupted", async () => {
  using _clock = new FakeClock();
  const { say, stored, seen } = conversation();
  await assertFails("aborted", "broke", () => say("break"));
  const after = await stored();
  assertEquals([after?.turn, after?.state, contents(after?.history)], [1, undefined, ["break", "re: break"]]);
  await say("a");
  assertEquals([seen[1]?.turn, seen[1]?.state, (await stored())?.state], [1, undefined, 1]);
});

Deno.test("Sessions lets init make a fresh state after a first turn that was interrupted", async () => {
  using _clock = new FakeClock();
  const { sessions, stored } = conversation();
  let made = 0;
  const definition = defineModel({
    session: { init: () => ({ number: ++made, turns: 0 }) },
    async *chat(message, ctx) {
      ctx.session.state.turns++;
      yield `${ctx.session.state.number}.${ctx.session.state.turns}`;
      if (message.content === "break") throw new ModelError("aborted", "broke");
    },
  });
  const invoke = sessions.interceptor(executorOf(definition));
  const say = async (content: string) => textsOf(await collect(invoke(chatCall(content, { sessionId: "s" }))));
  await assertFails("aborted", "broke", () => say("break"));
  assertEquals(await say("a"), ["2.1."]);
  await assertFails("aborted", "broke", () => say("break"));
  assertEquals([await say("b"), (await stored())?.turn], [["2.2."], 4]);
});

Deno.test("Sessions keeps nothing of a first turn that fails before it says anything", async () => {
  using clock = new FakeClock();
  const { say, stored, sessions } = conversation();
  await assertFails("aborted", "failed", () => say("fail"));
  assertEquals([await stored(), sessions.size, clock.armed], [undefined, 0, 0]);
  await say("a");
  await assertFails("aborted", "failed", () => say("fail"));
  assertEquals((await stored())?.turn, 1);
});

Deno.test("Sessions counts a turn that was answered with nothing", async () => {
  using _clock = new FakeClock();
  const { say, stored } = conversation();
  await say("quiet");
  assertEquals([(await stored())?.turn, contents((await stored())?.history)], [1, ["quiet", ""]]);
});

Deno.test("trimHistory() keeps the newest turns that fit in both bounds", () => {
  const history = ["a", "1111", "b", "2222", "c", "3333"].map((content, i): ChatMessage => ({
    role: i % 2 === 0 ? "user" : "assistant",
    content,
  }));
  const trimmed = (bounds: Partial<typeof BOUNDS>) => contents(trimHistory(history, { ...BOUNDS, ...bounds }));
  assertEquals(trimmed({}), contents(history));
  assertEquals(trimmed({ maxTurns: 2 }), ["b", "2222", "c", "3333"]);
  assertEquals(trimmed({ maxCharacters: 14 }), ["b", "2222", "c", "3333"]);
  assertEquals(trimmed({ maxCharacters: 10 }), ["b", "2222", "c", "3333"]);
  assertEquals(trimmed({ maxCharacters: 9 }), ["c", "3333"]);
  assertEquals(trimmed({ maxCharacters: 4 }), []);
  assertEquals(trimmed({ maxTurns: 1, maxCharacters: 10 }), ["c", "3333"]);
});

Deno.test("Sessions bounds the history that a function sees, and still counts every turn", async () => {
  using _clock = new FakeClock();
  const { say, seen } = conversation({ bounds: { maxTurns: 1 } });
  for (const content of ["a", "b", "c"]) await say(content);
  assertEquals([seen[2]?.turn, contents(seen[2]?.history)], [2, ["b", "re: b"]]);
});

Deno.test("Sessions ends a session once when it was idle for its time", async () => {
  using clock = new FakeClock();
  const { say, seen, stored, ended, sessions } = conversation();
  await say("a");
  await clock.advance(600);
  await say("b"); // begins its time anew
  await clock.advance(999);
  assertEquals(ended, []);
  await clock.advance(1);
  assertEquals([endings(ended), ended[0]?.model, ended[0]?.snapshot.state], [["s idle"], "model", 2]);
  assertEquals([await stored(), sessions.size, clock.armed], [undefined, 0, 0]);
  await say("c");
  assertEquals(seen.at(-1), undefined);
});

Deno.test("Sessions does not end a session while a turn of it runs", async () => {
  using clock = new FakeClock();
  const { say, ended, openGate } = conversation();
  const turn = say("wait");
  await clock.advance(5000);
  openGate();
  await turn;
  await clock.advance(999);
  assertEquals(ended, []);
  await clock.advance(1);
  assertEquals(endings(ended), ["s idle"]);
});

Deno.test("Sessions does not end a session that open streams hold", async () => {
  using clock = new FakeClock();
  const { say, ended, sessions } = conversation();
  const first = sessions.hold("model", undefined, "s");
  await say("a");
  const second = sessions.hold("model", undefined, "s");
  await clock.advance(5000);
  first();
  first(); // counts once
  await clock.advance(5000);
  assertEquals(ended, []);
  second();
  await clock.advance(1000);
  assertEquals(endings(ended), ["s idle"]);
});

Deno.test("Sessions holds nothing when nothing was said on a stream", async () => {
  using clock = new FakeClock();
  const { sessions } = conversation();
  sessions.hold("model", undefined, "s")();
  assertEquals([sessions.size, clock.armed], [0, 0]);
  await clock.advance(5000);
});

Deno.test("Sessions ends the least recently used idle session when there are too many", async () => {
  using _clock = new FakeClock();
  const { say, ended, sessions } = conversation({ maxSessions: 3 });
  for (const id of ["a", "b", "c", "a"]) await say("x", id);
  const release = sessions.hold("model", undefined, "b");
  await say("x", "d");
  await settled();
  assertEquals(endings(ended), ["c evicted"]);
  await say("x", "e");
  await settled();
  assertEquals([endings(ended), sessions.size], [["c evicted", "a evicted"], 3]);
  release();
});

Deno.test("Sessions refuses a new session when there are too many and none is idle", async () => {
  using _clock = new FakeClock();
  const { say, openGate, ended, sessions } = conversation({ maxSessions: 2 });
  await say("x", "held");
  const release = sessions.hold("model", undefined, "held");
  const turn = say("wait", "busy");
  await settled();
  const error = await assertFails("resource_exhausted", "2 are in use (option maxSessions) and none is idle", () => {
    return say("x", "new");
  });
  assertEquals([error.details, ended], [{ retryAfterMs: 1000 }, []]);
  await say("x", "held"); // one that exists goes on
  openGate();
  await turn;
  release();
});

Deno.test("Sessions gives a turn that comes while its session ends a new one, and does not wait for its close", async () => {
  using clock = new FakeClock();
  const closing = Promise.withResolvers<void>();
  const { say, seen, ended } = conversation({ close: () => closing.promise });
  await say("x");
  await clock.advance(1000);
  await say("y");
  assertEquals([seen, endings(ended)], [[undefined, undefined], ["s idle"]]);
  closing.resolve();
  await clock.advance(1000);
  assertEquals(endings(ended), ["s idle", "s idle"]);
});

Deno.test("Sessions.endAll() ends every session once, with the reason, and waits for it", async () => {
  using clock = new FakeClock();
  const { say, ended, sessions } = conversation();
  for (const id of ["a", "b"]) await say("x", id);
  await sessions.endAll("shutdown");
  await sessions.endAll("shutdown");
  await clock.advance(5000);
  assertEquals([endings(ended), sessions.size, clock.armed], [["a shutdown", "b shutdown"], 0, 0]);
});

Deno.test("Sessions logs a close that fails, and forgets the session all the same", async () => {
  using clock = new FakeClock();
  const { say, stored, records } = conversation({ close: () => Promise.reject(new Error("stuck")) });
  await say("a");
  await clock.advance(1000);
  await settled();
  assertEquals(records.map(({ level, message }) => [level, message]), [["error", "Cannot end a session cleanly"]]);
  assertEquals(await stored(), undefined);
});

Deno.test("Sessions lets a turn go that is aborted while it waits for the one before it", async () => {
  using clock = new FakeClock();
  const { say, seen, ended, openGate } = conversation();
  const first = say("wait");
  const controller = new AbortController();
  const second = say("b", "s", { signal: controller.signal }).catch((error) => error.code);
  const third = say("c");
  await settled();
  controller.abort();
  assertEquals(await second, "cancelled");
  openGate();
  await Promise.all([first, third]);
  assertEquals([seen.length, contents(seen[1]?.history)], [2, ["wait", "re: wait"]]);
  await clock.advance(1000);
  assertEquals(endings(ended), ["s idle"]);
});

Deno.test("Sessions keeps a session on the load on which it began, whatever its turns were routed to", async () => {
  using clock = new FakeClock();
  const { say, answered, ended, pins } = conversation();
  await say("a", "s", { revision: 1 });
  pins.revision = 2;
  pins.version = "2";
  await say("b", "s", { revision: 2 });
  await say("c", "s");
  await say("d", "t", { revision: 2 });
  assertEquals(answered, ["1 r1", "1 r1", "1 r1", "2 r2"]);
  assertEquals(pins.held, { 1: 1, 2: 1 });
  await clock.advance(1000);
  assertEquals(ended.map(({ revision, snapshot }) => [snapshot.id, revision]), [["s", 1], ["t", 2]]);
  assertEquals(pins.held, { 1: 0, 2: 0 });
  await say("e", "s");
  assertEquals(answered.at(-1), "2 r2");
});

Deno.test("Sessions begins a session beside a live one of the same id when a turn names another version", async () => {
  using clock = new FakeClock();
  const { say, answered, seen, sessions, stored, ended } = conversation();
  await say("a", "s");
  await say("b", "s", { version: "2", revision: 2 });
  await say("c", "s"); // names none: the first one's
  await say("d", "s", { version: "2", revision: 2 });
  await say("e", "s", { version: "1" });
  assertEquals(answered, ["1 r1", "2 r2", "1 r1", "2 r2", "1 r1"]);
  assertEquals(seen.map((session) => session?.turn), [undefined, undefined, 1, 1, 2]);
  assertEquals([sessions.size, (await stored())?.turn, (await stored("s", "model@2"))?.turn], [2, 3, 2]);
  const versions = ["1", "2", "3", undefined];
  assertEquals(
    await Promise.all(versions.map((version) => exists(sessions, version, "s"))),
    [true, true, false, true],
  );
  const release = sessions.hold("model", "2", "s");
  await clock.advance(1000);
  assertEquals(ended.map(({ model, revision }) => [model, revision]), [["model", 1]]);
  release();
  await clock.advance(1000);
  assertEquals(ended.map(({ model, revision }) => [model, revision]), [["model", 1], ["model", 2]]);
});

Deno.test("Sessions keeps the version that a session began with when it was named then and is not any more", async () => {
  using _clock = new FakeClock();
  const { say, answered, sessions } = conversation();
  await say("a", "s", { version: "2", revision: 2 });
  await say("b", "s");
  assertEquals([answered, sessions.size], [["2 r2", "2 r2"], 1]);
});

Deno.test("Sessions releases the load of a first turn that fails before it says anything", async () => {
  using _clock = new FakeClock();
  const { say, pins } = conversation();
  await assertFails("aborted", "failed", () => say("fail"));
  assertEquals(pins.held, { 1: 0 });
  await assertFails("aborted", "broke", () => say("break")); // it said something: the session stays
  assertEquals(pins.held, { 1: 1 });
});

Deno.test("Sessions releases the load only after the function's close, and when that fails too", async () => {
  using clock = new FakeClock();
  const closing = Promise.withResolvers<void>();
  const { say, pins } = conversation({ close: () => closing.promise });
  await say("a");
  await clock.advance(1000);
  assertEquals(pins.held, { 1: 1 });
  closing.reject(new Error("stuck"));
  await settled();
  assertEquals(pins.held, { 1: 0 });
});

Deno.test("Sessions.endIdle() ends the sessions of one load that nobody uses", async () => {
  using _clock = new FakeClock();
  const { say, sessions, ended, pins, openGate } = conversation();
  for (const id of ["idle", "held", "other"]) await say("x", id, { revision: id === "other" ? 2 : 1 });
  const release = sessions.hold("model", undefined, "held");
  const turn = say("wait", "busy", { revision: 1 });
  await settled();
  sessions.endIdle(1, "replaced");
  await settled();
  assertEquals([endings(ended), sessions.size, pins.held], [["idle replaced"], 3, { 1: 2, 2: 1 }]);
  openGate();
  await turn;
  release();
  sessions.endIdle(1, "replaced");
  await settled();
  assertEquals([endings(ended).toSorted(), pins.held], [
    ["busy replaced", "held replaced", "idle replaced"],
    { 1: 0, 2: 1 },
  ]);
});

Deno.test("Sessions.end() ends a session that its client is done with, after the turn in progress", async () => {
  using _clock = new FakeClock();
  const { say, sessions, ended, seen, pins, openGate } = conversation();
  await say("x");
  const turn = say("wait");
  await settled();
  await sessions.end("model", undefined, "s");
  assertEquals([endings(ended), sessions.size], [[], 0]);
  const next = say("y"); // it begins a new one, behind the end of the old
  openGate();
  assertEquals(await turn, ["re: wait"]);
  assertEquals(await next, ["re: y"]);
  await settled();
  assertEquals([endings(ended), ended[0]!.snapshot.turn, seen.at(-1), pins.held], [["s ended"], 2, undefined, {
    1: 1,
  }]);
});

Deno.test("Sessions.end() does nothing about a session that there is not", async () => {
  const { sessions, ended, pins } = conversation();
  await sessions.end("model", undefined, "none");
  await sessions.end("model", "7", "none");
  assertEquals([ended, pins.held], [[], {}]);
});

Deno.test("Sessions answers a turn of a session that its caller gives, and keeps nothing of it", async () => {
  using _clock = new FakeClock();
  const { say, seen, stored, sessions, ended, pins } = conversation();
  const given = { id: "s", turn: 1, history: [{ role: "system", content: "be brief" }], state: undefined } as const;
  assertEquals(await say("last", "s", { session: given }), ["re: last", "!."]);
  assertEquals(await say("b", "s", { session: given }), ["re: b"]);
  assertEquals(seen, [given, given]);
  assertEquals([await stored(), sessions.size, pins.held], [undefined, 0, { 1: 0 }]);
  assertEquals(endings(ended), ["s ended", "s ended"]); // the function's close hears of it
  assertEquals(contents(ended[0]?.snapshot.history), ["be brief", "last", "re: last!"]);
});

Deno.test("Sessions lets a given session end with a turn that fails or is left", async () => {
  using _clock = new FakeClock();
  const { say, invoke, ended, pins } = conversation();
  const session = { id: "s", turn: 0, history: [], state: undefined };
  await assertFails("aborted", "failed", () => say("fail", "s", { session }));
  assertEquals(endings(ended), []); // it said nothing
  for await (const _piece of invoke(chatCall("wait", { session, sessionId: "s" }))) break;
  await settled();
  assertEquals([endings(ended), ended[0]?.snapshot.history.at(-1)?.interrupted], [["s ended"], true]);
  assertEquals(pins.held, { 1: 0 });
});
