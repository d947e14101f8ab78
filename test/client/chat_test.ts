// Conversations that outlive their streams.
import { ClientError, createClient } from "tensorlet/client";
import { defineModel } from "tensorlet";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "tensorlet/assert";
import { FakeClock } from "../harness/clock.ts";
import { startProxy } from "../harness/cutting_proxy.ts";
import { serveModels } from "../harness/grpc_client.ts";

const RETRY = { initialDelayMs: 60, maxDelayMs: 500 };

function counting() {
  const heard: string[] = [];
  const parrot = defineModel({
    session: { init: () => ({ count: 0 }) },
    async *chat(message, ctx) {
      heard.push(message.content);
      yield `${++ctx.session.state.count}: `;
      yield message.content;
    },
  });
  return { parrot, heard };
}

async function ask(chat: { send(content: string): AsyncIterable<string> }, content: string): Promise<string> {
  return (await Array.fromAsync(chat.send(content))).join("");
}

Deno.test("chat: a broken connection between turns is made anew, with the same session", async () => {
  const { parrot, heard } = counting();
  await using served = await serveModels({ parrot });
  await using proxy = startProxy({ target: served.address });
  await using client = createClient(proxy.address, { model: "parrot", retry: RETRY });
  await using chat = client.chat();
  assertEquals(await ask(chat, "one"), "1: one");
  proxy.cutAll();
  await until(() => !chat.isConnected);
  assertEquals(await ask(chat, "two"), "2: two");
  assertEquals([heard, proxy.connections], [["one", "two"], 2]);
  assert(chat.sessionId.length >= 32, "nobody can guess it");
});

Deno.test("chat: a turn that is cut short is not sent twice, and the session goes on", async () => {
  const heard: string[] = [];
  const gate = Promise.withResolvers<void>();
  const slow = defineModel({
    session: { init: () => ({}) },
    async *chat(message, ctx) {
      heard.push(message.content);
      yield `said ${ctx.session.history.length}`;
      if (message.content === "wait") await Promise.race([gate.promise, aborted(ctx.signal)]);
      yield " more";
    },
  });
  await using served = await serveModels({ slow });
  await using proxy = startProxy({ target: served.address });
  await using client = createClient(proxy.address, { model: "slow", retry: RETRY });
  await using chat = client.chat();
  const pieces: string[] = [];
  const error = await assertRejects(async () => {
    for await (const piece of chat.send("wait")) {
      pieces.push(piece);
      proxy.cutAll();
    }
  }, ClientError);
  assertEquals([pieces, heard], [["said 0"], ["wait"]]);
  assertStringIncludes(error.message, "the message is not sent again");
  // What it had said by then is in the history: two messages.
  assertEquals(await ask(chat, "go on"), "said 2 more");
  assertEquals(heard, ["wait", "go on"]);
});

Deno.test("chat: leaving a turn's loop, a deadline and a signal end the turn, not the session", async () => {
  const ended: string[] = [];
  const slow = defineModel({
    async *chat(message, ctx) {
      yield `${ctx.session.history.length}`;
      if (message.content === "short") return;
      await aborted(ctx.signal);
      ended.push(message.content);
      throw ctx.signal.reason;
    },
  });
  await using served = await serveModels({ slow });
  await using client = createClient(served.address, { model: "slow" });
  await using chat = client.chat();
  for await (const _piece of chat.send("leave")) break;
  const late = await assertRejects(() => Array.fromAsync(chat.send("late", { timeoutMs: 30 })), ClientError);
  assertEquals(late.code, "deadline_exceeded");
  const controller = new AbortController();
  const stopped = await assertRejects(async () => {
    for await (const _piece of chat.send("stop", { signal: controller.signal })) controller.abort();
  }, ClientError);
  assertEquals(stopped.code, "cancelled");
  assertEquals(await ask(chat, "short"), "6");
  assertEquals(ended, ["leave", "late", "stop"]);
});

Deno.test("chat: heartbeats go out while nothing is said, and bring a broken stream back", async () => {
  const { parrot, heard } = counting();
  using clock = new FakeClock();
  await using served = await serveModels({ parrot });
  await using proxy = startProxy({ target: served.address });
  await using client = createClient(proxy.address, { model: "parrot", retry: { retries: 0 } });
  await using chat = client.chat({ heartbeatMs: 20_000 });
  await ask(chat, "one");
  proxy.cutAll();
  await until(() => !chat.isConnected);
  await clock.advance(19_999);
  assertEquals(proxy.connections, 1);
  await clock.advance(1);
  await until(() => chat.isConnected);
  assertEquals(proxy.connections, 2);
  assertEquals(await ask(chat, "two"), "2: two");
  assertEquals([heard, proxy.connections], [["one", "two"], 2]);
});

Deno.test("chat: one turn at a time, and none without a word", async () => {
  const { parrot } = counting();
  await using served = await serveModels({ parrot });
  await using client = createClient(served.address, { model: "parrot" });
  await using chat = client.chat();
  const turn = chat.send("one")[Symbol.asyncIterator]();
  await turn.next();
  assertEquals((await assertRejects(() => ask(chat, "two"), ClientError)).code, "failed_precondition");
  await turn.next();
  await turn.next();
  assertEquals((await assertRejects(() => ask(chat, ""), ClientError)).code, "invalid_argument");
  await chat.close();
  assertEquals((await assertRejects(() => ask(chat, "three"), ClientError)).message, "The chat was closed");
});

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
}

const turnOfLoop = () => new Promise((resolve) => setImmediate(resolve));

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turnOfLoop();
}
