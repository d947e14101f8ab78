import { assertEquals } from "tensorlet/assert";
import { assertFails, chatCall, recordLog } from "../../test/harness/calls.ts";
import { FakeClock, settled } from "../../test/harness/clock.ts";
import { contents, conversation, endings } from "../../test/harness/conversation.ts";
import { SharedStore } from "../../test/harness/shared_store.ts";
import type { Reply } from "../core/call.ts";
import { reportOutages } from "./session_outage.ts";

/** Servers that share a store. */
function servers(count: number, options: Parameters<typeof conversation>[0] = {}) {
  const store = new SharedStore();
  const { log, records } = recordLog();
  const shared = { ...options, store: reportOutages(store, log) };
  return { store, records, all: Array.from({ length: count }, () => conversation(shared)) };
}

function pair(options: Parameters<typeof conversation>[0] = {}) {
  const { store, records, all: [here, there] } = servers(2, options);
  return { store, records, here: here!, there: there! };
}

const KEY = "model\0s";

Deno.test("Sessions go on at another server with what was answered", async () => {
  using _clock = new FakeClock();
  const { here, there } = pair();
  await here.say("a");
  await there.say("b");
  await here.say("c");
  assertEquals(contents(here.seen[1]?.history), ["a", "re: a", "b", "re: b"]);
  assertEquals([here.seen[1]?.turn, here.seen[1]?.state], [2, 2]);
});

Deno.test("Sessions answers turns that come to several servers one at a time", async () => {
  using _clock = new FakeClock();
  const { here, there } = pair();
  const first = here.say("wait");
  await settled();
  const second = there.say("b");
  await settled();
  assertEquals(there.seen, []);
  here.openGate();
  await Promise.all([first, second]);
  assertEquals(contents(there.seen[0]?.history), ["wait", "re: wait"]);
});

Deno.test("Sessions ends a session once, where it was served last", async () => {
  using clock = new FakeClock();
  const { here, there } = pair();
  await here.say("a");
  await clock.advance(600);
  await there.say("b");
  await clock.advance(400); // its time is over for the first server
  assertEquals([here.ended, here.sessions.size, here.pins.held[1]], [[], 0, 0]);
  await clock.advance(600);
  assertEquals([endings(here.ended), endings(there.ended), there.ended[0]?.snapshot.turn], [[], ["s idle"], 2]);
  assertEquals([await there.stored(), there.sessions.size, clock.armed], [undefined, 0, 0]);
});

Deno.test("Sessions forgets a session that another server has ended", async () => {
  using clock = new FakeClock();
  const { here, there } = pair({ bounds: { idleMs: 1000 } });
  await here.say("a");
  await there.say("b");
  there.sessions.endIdle(1, "replaced");
  await clock.advance(5000);
  assertEquals([endings(here.ended), endings(there.ended)], [[], ["s replaced"]]);
});

Deno.test("Sessions lets a turn at another server and the end of the idle time decide by who comes first", async () => {
  using clock = new FakeClock();
  const { here, there } = pair();
  await here.say("a");
  const turn = there.say("wait");
  await settled();
  await clock.advance(1000); // the end waits for the turn
  assertEquals([endings(here.ended), there.seen[0]?.turn], [[], 1]);
  there.openGate();
  await turn;
  await clock.advance(999);
  assertEquals([endings(here.ended), endings(there.ended)], [[], []]);
  await clock.advance(1);
  assertEquals([endings(here.ended), endings(there.ended)], [[], ["s idle"]]);
  await here.say("c");
  assertEquals(here.seen.at(-1), undefined);
});

Deno.test("Sessions keeps a session with its next server when a turn there says nothing", async () => {
  using clock = new FakeClock();
  const { here, there } = pair();
  await here.say("a");
  await clock.advance(900);
  await assertFails("aborted", "failed", () => there.say("fail"));
  await clock.advance(900);
  assertEquals([endings(here.ended), endings(there.ended)], [[], []]);
  await clock.advance(100);
  assertEquals([endings(here.ended), endings(there.ended)], [[], ["s idle"]]);
});

Deno.test("Sessions keeps a session alive that a quiet stream of any server holds", async () => {
  using clock = new FakeClock();
  const { here, there } = pair();
  const releaseHere = here.sessions.hold("model", undefined, "s");
  await here.say("a");
  const releaseThere = (await there.sessions.holdExisting("model", undefined, "s"))!;
  await clock.advance(100_000);
  releaseHere();
  await clock.advance(100_000);
  assertEquals([endings(here.ended), endings(there.ended), (await there.stored())?.turn], [[], [], 1]);
  assertEquals(here.sessions.size, 0);
  releaseThere();
  await clock.advance(999);
  assertEquals(endings(there.ended), []);
  await clock.advance(1);
  assertEquals([endings(here.ended), endings(there.ended), clock.armed], [[], ["s idle"], 0]);
});

Deno.test("Sessions begins the idle time of a session when the last stream of any server lets it go", async () => {
  using clock = new FakeClock();
  const { here, there } = pair();
  const releaseHere = here.sessions.hold("model", undefined, "s");
  await here.say("a");
  await clock.advance(400);
  (await there.sessions.holdExisting("model", undefined, "s"))!();
  await clock.advance(50);
  releaseHere();
  await clock.advance(999);
  assertEquals([endings(here.ended), endings(there.ended)], [[], []]);
  await clock.advance(1);
  assertEquals([endings(here.ended), endings(there.ended)], [["s idle"], []]);
});

Deno.test("Sessions keeps the session of a turn that takes longer than its time to live", async () => {
  using clock = new FakeClock();
  const { here, there } = pair();
  await here.say("a");
  const turn = here.say("wait");
  await clock.advance(100_000);
  assertEquals((await there.stored())?.turn, 1);
  here.openGate();
  await turn;
});

Deno.test("Sessions.holdExisting() holds nothing that does not exist, and leaves nothing behind", async () => {
  using clock = new FakeClock();
  const { here, store } = pair();
  assertEquals(await here.sessions.holdExisting("model", undefined, "s"), undefined);
  assertEquals([here.sessions.size, clock.armed, store.asked], [0, 0, ["load s"]]);
});

Deno.test("Sessions of a server that died go on at another, and expire in the store when nobody comes", async () => {
  using clock = new FakeClock();
  const { here, there } = pair();
  await here.say("a", "left");
  await here.say("a", "visited");
  await here.sessions.endAll("shutdown");
  assertEquals([here.ended, here.sessions.size, here.pins.held[1], clock.armed], [[], 0, 0, 0]);
  await clock.advance(10_999); // the idle time, and what a server that ends it may be late by
  assertEquals((await there.stored("left"))?.turn, 1);
  await there.say("b", "visited");
  await clock.advance(1);
  assertEquals([await there.stored("left"), there.seen[0]?.turn], [undefined, 1]);
  await there.say("b", "left");
  assertEquals(there.seen[1], undefined);
});

Deno.test("Sessions ends the least recently used session of a server that has too many, if it still serves it", async () => {
  using clock = new FakeClock();
  const { here, there } = pair({ maxSessions: 2 });
  await here.say("x", "a");
  await here.say("x", "b");
  await there.say("x", "a");
  await here.say("x", "c"); // "a" leaves: the other server has it
  await settled();
  assertEquals([here.ended, (await there.stored("a"))?.turn], [[], 2]);
  await here.say("x", "d");
  await settled();
  assertEquals([endings(here.ended), await there.stored("b")], [["b evicted"], undefined]);
  await clock.advance(1000);
  assertEquals([endings(here.ended), endings(there.ended)], [["b evicted", "c idle", "d idle"], ["a idle"]]);
});

Deno.test("Sessions serves a session of another server by its own version, or says that it cannot", async () => {
  using clock = new FakeClock();
  const { here, there } = pair();
  await here.say("a", "s", { version: "1", revision: 1 });
  there.pins.version = "2";
  there.pins.revision = 2;
  await there.say("b");
  assertEquals(there.answered, ["1 r2"]);
  there.pins.missing.add("1");
  await here.say("a", "t");
  await there.say("b", "t");
  assertEquals(there.answered, ["1 r2", "2 r2"]);
  assertEquals(there.records.map(({ level, fields }) => [level, fields.version]), [["warn", "1"]]);
  await here.say("c", "t");
  assertEquals(here.answered.at(-1), "2 r1"); // both go on with the version that answered last
  await clock.advance(1000);
  assertEquals([there.pins.held, here.pins.held], [{ 2: 0 }, { 1: 0 }]);
});

Deno.test("Sessions begins a session beside one of another version that another server serves", async () => {
  using clock = new FakeClock();
  const { here, there } = pair();
  await here.say("a");
  const release = there.sessions.hold("model", "2", "s");
  await there.say("b", "s", { version: "2", revision: 2 });
  await there.say("c", "s");
  await here.say("d", "s", { version: "2", revision: 2 });
  assertEquals([there.answered, here.answered], [["2 r2", "1 r1"], ["1 r1", "2 r2"]]);
  assertEquals([there.seen.map((each) => each?.turn), here.seen.map((each) => each?.turn)], [
    [undefined, 1],
    [undefined, 1],
  ]);
  await clock.advance(1000);
  assertEquals([endings(there.ended), there.ended[0]?.revision, endings(here.ended)], [["s idle"], 1, []]);
  release();
  await clock.advance(1000);
  assertEquals([endings(there.ended), endings(here.ended)], [["s idle", "s idle"], []]);
});

Deno.test("Sessions finds a session beside another one that has ended meanwhile", async () => {
  using _clock = new FakeClock();
  const { store, all: [here, there, third] } = servers(3);
  await here!.say("a");
  await there!.say("b", "s", { version: "2", revision: 2 });
  here!.sessions.endIdle(1, "replaced");
  await settled();
  await third!.say("c", "s", { version: "2", revision: 2 });
  assertEquals([third!.seen[0]?.turn, await store.count()], [1, 1]);
});

Deno.test("Sessions gives a turn up whose lease is lost, and keeps nothing of it", async () => {
  using _clock = new FakeClock();
  const { store, here } = pair();
  await here.say("a");
  const turn = here.say("wait");
  await settled();
  store.loseLease(KEY);
  await assertFails("aborted", "The lease is lost", () => turn);
  assertEquals([(await here.stored())?.turn, here.records.map(({ level }) => level)], [1, ["warn"]]);
});

Deno.test("Sessions sends no last piece of a turn that cannot be saved", async () => {
  using _clock = new FakeClock();
  const { store, here, there, records } = pair();
  await here.say("a");
  store.away = "save";
  const pieces: Reply[] = [];
  const error = await assertFails("unavailable", "The session store cannot be reached", async () => {
    for await (const piece of here.invoke(chatCall("last", { sessionId: "s" }))) pieces.push(piece);
  });
  assertEquals(pieces, [{ type: "delta", index: 0, text: "re: last" }]);
  assertEquals([error.message.includes("ECONN"), error.details], [false, { retryAfterMs: 1000 }]);
  await assertFails("unavailable", "", () => here.say("quiet"));
  assertEquals(records.map(({ level }) => level), ["error"]);
  store.away = undefined;
  assertEquals((await there.stored())?.turn, 1);
});

Deno.test("Sessions refuses turns while the store is away, logs it once, and recovers by itself", async () => {
  using clock = new FakeClock();
  const { store, here, records } = pair();
  await here.say("a");
  store.away = "all";
  for (let i = 0; i < 3; i++) await assertFails("unavailable", "cannot be reached", () => here.say("b"));
  await assertFails("unavailable", "cannot be reached", () => here.say("b", "new"));
  await clock.advance(500);
  store.away = undefined;
  assertEquals(await here.say("c"), ["re: c"]);
  assertEquals(here.seen.length, 2);
  assertEquals(records.map(({ level, message }) => `${level}: ${message}`), [
    "error: The session store cannot be reached: chats are refused until it is there again",
    "info: The session store can be reached again",
  ]);
  assertEquals([here.sessions.size, records[1]?.fields.outageMs], [1, 500]);
});

Deno.test("Sessions keeps the first failure of a turn that the store cannot keep either", async () => {
  using _clock = new FakeClock();
  const { store, here } = pair();
  await here.say("a");
  store.away = "save";
  await assertFails("aborted", "broke", () => here.say("break"));
  for await (const _ of here.invoke(chatCall("left", { sessionId: "s" }))) break;
  assertEquals(here.records.map(({ level, message }) => `${level}: ${message}`), [
    "warn: What an interrupted turn said cannot be kept",
    "warn: What an interrupted turn said cannot be kept",
  ]);
});

Deno.test("Sessions ends a session once that was due while the store was away", async () => {
  using clock = new FakeClock();
  const { store, here } = pair();
  await here.say("a");
  await here.say("a", "deleting");
  store.away = "all";
  await clock.advance(4000);
  store.away = "delete";
  await clock.advance(2000);
  assertEquals([endings(here.ended), here.pins.held[1]], [[], 2]);
  store.away = undefined;
  await clock.advance(30_000);
  assertEquals([endings(here.ended).sort(), here.pins.held[1], clock.armed], [["deleting idle", "s idle"], 0, 0]);
});

Deno.test("Sessions does not end a session that was due while the store was away and is used again", async () => {
  using clock = new FakeClock();
  const { store, here } = pair();
  await here.say("a");
  store.away = "all";
  await clock.advance(1000);
  store.away = undefined;
  await here.say("b");
  assertEquals(here.seen[1]?.turn, 1);
  const release = here.sessions.hold("model", undefined, "s");
  await clock.advance(60_000);
  assertEquals(endings(here.ended), []);
  release();
  await clock.advance(1000);
  assertEquals([endings(here.ended), here.pins.held[1], clock.armed], [["s idle"], 0, 0]);
});

Deno.test("Sessions gives up ending a session when the store has long forgotten it", async () => {
  using clock = new FakeClock();
  const { store, here } = pair();
  await here.say("a");
  store.away = "all";
  await clock.advance(100_000);
  assertEquals([here.ended, here.pins.held[1], clock.armed], [[], 0, 0]);
});

Deno.test("Sessions.endAll() does not wait for a store that is away, nor for turns of other servers", async () => {
  using clock = new FakeClock();
  const { store, here, there } = pair();
  await here.say("a");
  const turn = there.say("wait");
  await clock.advance(1000); // the end of the idle time waits for the other server's turn
  await here.sessions.endAll("shutdown");
  there.openGate();
  await turn;
  assertEquals([here.ended, (await there.stored())?.turn, here.pins.held[1]], [[], 2, 0]);
  store.away = "all";
  await clock.advance(1000);
  await there.sessions.endAll("shutdown");
  assertEquals([there.ended, there.pins.held[1], clock.armed], [[], 0, 0]);
});

Deno.test("Sessions.greet() says at the start what the store holds, or that it is away", async () => {
  using _clock = new FakeClock();
  const { store, here, there, records } = pair();
  await here.say("a");
  there.sessions.greet();
  await settled();
  assertEquals(there.records.map(({ fields }) => fields.sessions), [1]);
  store.away = "all";
  there.sessions.greet();
  await settled();
  assertEquals(records.map(({ level }) => level), ["error"]);
});

Deno.test("Sessions asks a shared store for no more than it needs", async () => {
  using _clock = new FakeClock();
  const { store, here, there } = pair();
  await here.say("a");
  await here.say("b");
  assertEquals(store.asked, ["load s", "save s", "load s", "save s"]);
  store.asked.length = 0;
  await there.say("c");
  assertEquals(store.asked, ["load s", "touch s", "save s"]);
});
