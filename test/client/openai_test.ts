// OpenAI's own client for JavaScript against a real socket: what its users do, and what they catch.
import OpenAI, { APIError, BadRequestError, NotFoundError, RateLimitError } from "openai";
import { defineModel, ModelError } from "tensorlet";
import { assertEquals, assertRejects } from "tensorlet/assert";
import { serveModels } from "../harness/grpc_client.ts";

const ended = new Map<string, PromiseWithResolvers<void>>();

/** Resolves when the function that was told so has been aborted. */
function endOf(text: string): PromiseWithResolvers<void> {
  return ended.getOrInsertComputed(text, () => Promise.withResolvers());
}

async function* speak(text: string, signal: AbortSignal): AsyncGenerator<string, void, undefined> {
  signal.addEventListener("abort", () => endOf(text).resolve());
  for (const word of text.split(" ")) {
    if (word === "busy") throw new ModelError("resource_exhausted", "Try later", { details: { retryAfterMs: 2500 } });
    if (word === "break") throw new ModelError("internal", "It broke");
    if (word === "endless") { for (;;) yield "again "; }
    yield `${word} `;
  }
}

const speaker = defineModel({
  params: { prompt: { type: "string", default: "" } },
  stream: (_input, ctx) => speak(ctx.params.prompt, ctx.signal),
  async *chat(message, ctx) {
    if (message.content !== "history") return yield* speak(message.content, ctx.signal);
    yield ctx.session.history.map(({ role, content }) => `${role}: ${content}`).join(", ");
  },
});

async function serve() {
  const served = await serveModels({ speaker }, { http: { port: 0 } });
  const { port } = served.server.addresses.http!;
  const client = new OpenAI({ baseURL: `http://127.0.0.1:${port}/v1`, apiKey: "none", maxRetries: 0 });
  return { client, [Symbol.asyncDispose]: () => served[Symbol.asyncDispose]() };
}

const write = (prompt: string) => ({ model: "speaker", prompt });
const say = (content: string) => ({ model: "speaker", messages: [{ role: "user" as const, content }] });

Deno.test("openai lists models, completes texts and chats", async () => {
  await using served = await serve();
  const { client } = served;
  assertEquals((await Array.fromAsync(client.models.list())).map(({ id }) => id), ["speaker"]);
  const completion = await client.completions.create({ ...write("one two"), stop: "two" });
  assertEquals([completion.choices[0]!.text, completion.choices[0]!.finish_reason], ["one ", "stop"]);
  assertEquals(completion.usage?.completion_tokens, 2);
  const chat = await client.chat.completions.create({
    model: "speaker",
    messages: [
      { role: "system", content: "s" },
      { role: "user", content: "u" },
      { role: "assistant", content: "a" },
      { role: "user", content: "history" },
    ],
  });
  assertEquals(chat.choices[0]!.message.content, "system: s, user: u, assistant: a");
});

Deno.test("openai reads streams, with their usage", async () => {
  await using served = await serve();
  const options = { stream: true, stream_options: { include_usage: true } } as const;
  const texts = await Array.fromAsync(await served.client.completions.create({ ...write("a b c"), ...options }));
  assertEquals(texts.map(({ choices: [choice] }) => choice?.text), ["a ", "b ", "c ", "", undefined]);
  assertEquals(texts.at(-1)?.usage?.total_tokens, 3);
  const deltas = await Array.fromAsync(
    await served.client.chat.completions.create({ ...say("a b"), max_completion_tokens: 1, stream: true }),
  );
  assertEquals(deltas.map(({ choices: [choice] }) => [choice?.delta.content, choice?.finish_reason]), [
    ["", null],
    ["a ", null],
    [undefined, "length"],
  ]);
});

Deno.test("openai's failures are of its own classes", async () => {
  await using served = await serve();
  const { completions, chat } = served.client;
  await assertRejects(() => completions.create({ ...write("a"), model: "nobody" }), NotFoundError);
  await assertRejects(() => completions.create({ ...write("a"), n: 2 }), BadRequestError);
  await assertRejects(() => chat.completions.create(say("busy")), RateLimitError);
  await assertRejects(() => completions.create({ ...write("busy"), stream: true }), RateLimitError);
  const broken = await completions.create({ ...write("one break"), stream: true });
  await assertRejects(() => Array.fromAsync(broken), APIError);
});

Deno.test("openai's client ends the function when it leaves", async () => {
  await using served = await serve();
  const { client } = served;
  for await (const _text of await client.completions.create({ ...write("endless text"), stream: true })) break;
  await endOf("endless text").promise;
  const stream = await client.chat.completions.create({ ...say("endless chat"), stream: true });
  for await (const chunk of stream) if (chunk.choices[0]?.delta.content) stream.controller.abort();
  await endOf("endless chat").promise;
  const gone = new AbortController();
  const whole = client.completions.create(write("endless whole"), { signal: gone.signal });
  setTimeout(() => gone.abort(), 100); // whenever: it never ends by itself
  await assertRejects(() => whole);
  await endOf("endless whole").promise;
});
