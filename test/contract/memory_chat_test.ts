// inference.v1.ModelInference/ChatStream, bytes in and out.
import { defineModel, ModelError } from "tensorlet";
import { assert, assertEquals, assertMatch } from "tensorlet/assert";
import { createTestServer } from "tensorlet/testing";
import { FakeClock, settled } from "../harness/clock.ts";
import { call, type MessageResult } from "../harness/messages.ts";

// Says how many turns it had and what it heard; "wait" until the test opens the gate, "fail" fails.
function talker(idleMs = 1000) {
  const ends: string[] = [];
  let gate = Promise.withResolvers<void>();
  const bot = defineModel({
    session: { init: () => 0, idleMs },
    params: { mood: { type: "string", default: "fine" } },
    async *chat(message, ctx) {
      if (message.content === "fail") throw new ModelError("aborted", "no");
      yield `${ctx.session.turn}`;
      if (message.content === "wait") await gate.promise;
      if (message.content === "mood") yield ctx.params.mood;
      yield `:${message.content}`;
    },
    close: (session, reason) => void ends.push(`${session.id} ${reason}`),
  });
  const openGate = () => {
    gate.resolve();
    gate = Promise.withResolvers();
  };
  return { bot, ends, openGate };
}

const say = (content: string, session_id = "s") => ({ session_id, content });
const said = ({ replies }: MessageResult, session = "s") =>
  replies.filter(({ session_id }) => session_id === session).map(({ content, finish_reason }) =>
    finish_reason ? `${content}.` : content
  );

// A client's messages, sent when the test says so.
function client() {
  const messages: object[] = [];
  let wake = Promise.withResolvers<void>();
  let closed = false;
  async function* requests() {
    for (;;) {
      while (messages.length > 0) yield messages.shift()!;
      if (closed) return;
      await wake.promise;
      wake = Promise.withResolvers();
    }
  }
  return {
    requests: requests(),
    send: (...more: readonly object[]) => (messages.push(...more), wake.resolve(), settled()),
    close: () => (closed = true, wake.resolve()),
  };
}

Deno.test("ChatStream answers turns in order, each with pieces of which the last is marked", async () => {
  await using server = await createTestServer({ bot: talker().bot });
  const result = await call(server, "chat", [say("a"), say("b")]);
  assertEquals([result.code, said(result)], ["ok", ["0", ":a.", "1", ":b."]]);
});

Deno.test("ChatStream reads params from the metadata", async () => {
  await using server = await createTestServer({ bot: talker().bot });
  const options = { metadata: { "model-id": "bot@1", "param-mood": "happy" } };
  assertEquals(said(await call(server, "chat", [say("mood")], options)), ["0", "happy", ":mood."]);
});

Deno.test("ChatStream ends a turn of nothing, or with an unknown end, with an empty marked piece", async () => {
  const mute = defineModel({ async *chat() {} });
  const lingering = defineModel({
    async *chat() {
      yield "a";
      await settled();
    },
  });
  await using server = await createTestServer({ mute, lingering });
  const ask = (model: string) => call(server, "chat", [say("x")], { metadata: { "model-id": model } });
  assertEquals([said(await ask("mute")), said(await ask("lingering"))], [["."], ["a", "."]]);
});

Deno.test("ChatStream makes one unguessable session for all messages without a session_id", async () => {
  await using server = await createTestServer({ bot: talker().bot });
  const first = await call(server, "chat", [say("", ""), say("a", ""), say("b", "")]);
  const ids = new Set(first.replies.map(({ session_id }) => session_id));
  assertEquals(ids.size, 1);
  const [id] = ids;
  assertMatch(id, /^[0-9a-f-]{36}$/);
  assertEquals(said(first, id), ["", "0", ":a.", "1", ":b."]);
  const second = await call(server, "chat", [say("a", "")]);
  assert(second.replies[0].session_id !== id);
  assertEquals(said(await call(server, "chat", [say("c", id)]), id), ["2", ":c."]);
});

Deno.test("ChatStream takes any session_id of 256 bytes for data", async () => {
  await using server = await createTestServer({ bot: talker().bot });
  for (const id of ["__proto__", "constructor", "é😀", "\0", "x".repeat(256), "é".repeat(128)]) {
    const result = await call(server, "chat", [say("a", id), say("b", id)]);
    assertEquals([result.code, said(result, id)], ["ok", ["0", ":a.", "1", ":b."]]);
  }
  for (const id of ["x".repeat(257), "é".repeat(129), "😀".repeat(65)]) {
    const { code, message } = await call(server, "chat", [say("a", id)]);
    assertEquals(code, "invalid_argument");
    assertMatch(message, /^Cannot accept session_id ".*…": it takes (257|258|260) bytes, wanted at most 256$/);
  }
});

Deno.test("ChatStream remembers a session from one stream to the next", async () => {
  await using server = await createTestServer({ bot: talker().bot });
  assertEquals(said(await call(server, "chat", [say("a")])), ["0", ":a."]);
  assertEquals(said(await call(server, "chat", [say("b")])), ["1", ":b."]);
  assertEquals(said(await call(server, "chat", [say("c", "other")]), "other"), ["0", ":c."]);
});

Deno.test("ChatStream answers a heartbeat at once, while a turn runs, and the handler never sees it", async () => {
  const { bot, openGate } = talker();
  await using server = await createTestServer({ bot });
  const { requests, send, close } = client();
  const answer = call(server, "chat", requests);
  await send(say("wait"));
  await send(say(""), say("", "unknown"));
  openGate();
  await send(say("b"));
  close();
  const result = await answer;
  assertEquals(said(result), ["0", "", ":wait.", "1", ":b."]);
  assertEquals(said(result, "unknown"), [""]);
});

Deno.test("ChatStream finishes the turns that wait when the client half-closes", async () => {
  const { bot, openGate } = talker();
  await using server = await createTestServer({ bot });
  const answer = call(server, "chat", [say("wait"), say("b")]);
  await settled();
  openGate();
  const result = await answer;
  assertEquals([result.code, said(result)], ["ok", ["0", ":wait.", "1", ":b."]]);
});

Deno.test("ChatStream runs turns of different sessions on one stream side by side", async () => {
  const { bot, openGate } = talker();
  await using server = await createTestServer({ bot });
  const { requests, send, close } = client();
  const answer = call(server, "chat", requests);
  await send(say("wait", "a"), say("x", "b"), say("y", "b"), say("z", "a"));
  openGate();
  close();
  const result = await answer;
  assertEquals(said(result, "a"), ["0", ":wait.", "1", ":z."]);
  assertEquals(said(result, "b"), ["0", ":x.", "1", ":y."]);
  const order = result.replies.map(({ session_id, content }) => `${session_id}${content}`);
  assert(order.indexOf("b:y") < order.indexOf("a:wait"), `${order}`);
});

Deno.test("ChatStream answers the turns of a session that two streams share one at a time, in order", async () => {
  const { bot, openGate } = talker();
  await using server = await createTestServer({ bot });
  const first = call(server, "chat", [say("wait")]);
  await settled();
  const second = call(server, "chat", [say("b")]);
  await settled();
  openGate();
  assertEquals([said(await first), said(await second)], [["0", ":wait."], ["1", ":b."]]);
});

Deno.test("ChatStream keeps what a cancelled turn said, and counts the turn", async () => {
  let seen: unknown;
  const { bot } = talker();
  const listening = defineModel({
    async *chat(message, ctx) {
      seen = ctx.session.history;
      yield "so far";
      if (message.content === "wait") await new Promise(() => {});
    },
  });
  await using server = await createTestServer({ bot, listening });
  const controller = new AbortController();
  const options = { metadata: { "model-id": "listening" } };
  const cut = call(server, "chat", [say("wait")], { ...options, signal: controller.signal });
  await settled();
  controller.abort();
  assertEquals((await cut).code, "cancelled");
  await settled();
  assertEquals((await call(server, "chat", [say("b")], options)).code, "ok");
  assertEquals(seen, [
    { role: "user", content: "wait" },
    { role: "assistant", content: "so far", interrupted: true },
  ]);
});

Deno.test("ChatStream ends with the failure of a turn, and the session goes on without it", async () => {
  await using server = await createTestServer({ bot: talker().bot });
  const failed = await call(server, "chat", [say("a"), say("fail"), say("b")]);
  assertEquals([failed.code, failed.message, said(failed)], ["aborted", "no", ["0", ":a."]]);
  assertEquals(said(await call(server, "chat", [say("c")])), ["1", ":c."]);
});

Deno.test("ChatStream frees a session when its last stream has gone and its idle time has passed", async () => {
  using clock = new FakeClock();
  const { bot, ends } = talker();
  await using server = await createTestServer({ bot });
  const { requests, send, close } = client();
  const open = call(server, "chat", requests);
  await send(say("a"));
  const second = call(server, "chat", [say("b")]);
  await second;
  await clock.advance(10_000); // the first stream is quiet but open
  assertEquals(ends, []);
  close();
  await open;
  await clock.advance(999);
  assertEquals(ends, []);
  await clock.advance(1);
  assertEquals(ends, ["s idle"]);
  assertEquals(said(await call(server, "chat", [say("c")])), ["0", ":c."]);
});

Deno.test("ChatStream keeps a session alive by heartbeats of a stream that came back", async () => {
  using clock = new FakeClock();
  const { bot, ends } = talker();
  await using server = await createTestServer({ bot });
  await call(server, "chat", [say("a")]);
  const { requests, send, close } = client();
  const open = call(server, "chat", requests);
  await send(say(""));
  await clock.advance(10_000);
  assertEquals(ends, []);
  close();
  await open;
  await clock.advance(1000);
  assertEquals(ends, ["s idle"]);
});

Deno.test("ChatStream bounds the sessions of a server", async () => {
  const { bot, ends } = talker();
  await using server = await createTestServer({ bot }, { limits: { maxSessions: 2 } });
  for (const id of ["a", "b", "c"]) await call(server, "chat", [say("x", id)]);
  await settled();
  assertEquals(ends, ["a evicted"]);
  const { requests, send, close } = client();
  const open = call(server, "chat", requests);
  await send(say("x", "b"), say("x", "c"));
  const { code, message } = await call(server, "chat", [say("x", "d")]);
  assertEquals([code, message.includes("option maxSessions")], ["resource_exhausted", true]);
  close();
  assertEquals((await open).code, "ok");
});

Deno.test("ChatStream ends between turns when the server shuts down, and sessions with it, once", async () => {
  const { bot, ends, openGate } = talker();
  const server = await createTestServer({ bot });
  const { requests, send } = client();
  const open = call(server, "chat", requests);
  await send(say("wait"));
  const disposed = server[Symbol.asyncDispose]();
  openGate();
  const result = await open;
  await disposed;
  assertEquals([result.code, said(result)], ["unavailable", ["0", ":wait."]]);
  assertEquals(ends, ["s shutdown"]);
});
