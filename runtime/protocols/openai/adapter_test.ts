import { assert, assertEquals, assertStringIncludes } from "tensorlet/assert";
import { assertFails, NEVER, SILENT } from "../../../test/harness/calls.ts";
import { settled } from "../../../test/harness/clock.ts";
import { defineModel } from "../../core/define.ts";
import { ModelError } from "../../core/error.ts";
import { abortable } from "../../core/signal.ts";
import { createTestServer, type TestServer } from "../../testing.ts";
import type { AdapterHost } from "../adapter.ts";
import { openai } from "./adapter.ts";

const log: string[] = [];

// Says its words; "wait" waits until it is ended, "fail" fails, "busy" is refused with a hint when to try again.
async function* speak(text: string, signal: AbortSignal) {
  try {
    for (const word of text.split(" ")) {
      if (word === "fail") throw new Error("secret");
      if (word === "busy") {
        throw new ModelError("resource_exhausted", "Too many", { details: { retryAfterMs: 1500 } });
      }
      if (word === "endless") { for (;;) yield "again "; }
      if (word === "wait") await abortable(new Promise(() => {}), signal);
      yield `${word} `;
    }
  } finally {
    log.push(`ended ${text}`);
  }
}

const MODELS = {
  writer: defineModel({
    params: { prompt: { type: "string", default: "" }, max_tokens: { type: "integer", default: 100 } },
    stream: (_, ctx) => speak(ctx.params.prompt, ctx.signal),
  }),
  talker: defineModel({
    session: { init: () => ({ fresh: true }) },
    async *chat(message, ctx) {
      const { turn, history, state } = ctx.session;
      if (message.content === "history") yield JSON.stringify({ turn, history, state });
      else yield* speak(message.content, ctx.signal);
    },
    close: (session, reason) => void log.push(`closed after ${session.turn}: ${reason}`),
  }),
  upper: defineModel({
    input: { dtype: "string", shape: [1] },
    output: { dtype: "string", shape: [1] },
    predict: (x) => [x.data[0]!.toUpperCase()],
  }),
  numbers: defineModel({ input: { dtype: "float32" }, output: { dtype: "float32" }, predict: (x) => x.data }),
};

const serve = () => createTestServer(MODELS, { adapters: [openai] });

async function post(server: TestServer, path: string, body: unknown): Promise<Response> {
  return await server.fetch(
    new Request(`http://server/v1/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-request-id": "r1" },
      body: JSON.stringify(body),
    }),
  );
}

const complete = (server: TestServer, prompt: string, more: object = {}) =>
  post(server, "completions", { model: "writer", prompt, ...more });

const say = (server: TestServer, content: string, more: object = {}) =>
  post(server, "chat/completions", { model: "talker", messages: [{ role: "user", content }], ...more });

// deno-lint-ignore no-explicit-any
type Json = any;

/** The events of a response; the last one as text where it is no JSON. */
async function events(response: Response): Promise<Json[]> {
  assertEquals(response.headers.get("content-type"), "text/event-stream; charset=utf-8");
  const parts = (await response.text()).split("\n\n").filter((part) => part !== "");
  return parts.map((part) => {
    assert(part.startsWith("data: "), part);
    return part === "data: [DONE]" ? "[DONE]" : JSON.parse(part.slice(6));
  });
}

async function failure(response: Response): Promise<readonly [status: number, code: string | null, param: string]> {
  const { error } = await response.json();
  return [response.status, error.code, error.param];
}

Deno.test("GET /v1/models lists what is served, GET /v1/models/:model one of it", async () => {
  await using server = await serve();
  const list = await (await server.fetch(new Request("http://server/v1/models"))).json();
  assertEquals(list.object, "list");
  assertEquals(list.data.map(({ id }: Json) => id).toSorted(), ["numbers", "talker", "upper", "writer"]);
  const one = await (await server.fetch(new Request("http://server/v1/models/writer"))).json();
  const { created, ...rest } = one;
  assertEquals(rest, { id: "writer", object: "model", owned_by: "tensorlet" });
  assert(Number.isInteger(created));
  const version = await server.fetch(new Request("http://server/v1/models/writer@1"));
  assertEquals((await version.json()).id, "writer@1");
  for (const name of ["nobody", "writer@9"]) {
    const none = await server.fetch(new Request(`http://server/v1/models/${name}`));
    assertEquals(await failure(none), [404, "model_not_found", "model"]);
  }
  const near = await server.fetch(new Request("http://server/v1/models/writr"));
  assertStringIncludes((await near.json()).error.message, 'There is no model "writr"; the nearest name is "writer"');
});

Deno.test("GET /v1/models lists the versions of a function that has several", async () => {
  const host = { catalog: { list: () => [{ name: "v", version: "2" }, { name: "v", version: "1" }] } };
  const [route] = openai(host as unknown as AdapterHost).http!;
  const list = await (await route!.handle(new Request("http://server/"), {} as never)).json();
  assertEquals(list.data.map(({ id }: Json) => id), ["v", "v@2", "v@1"]);
});

Deno.test("POST /v1/completions answers with the whole text", async () => {
  await using server = await serve();
  const { created, ...rest } = await (await complete(server, "a b c")).json();
  assert(Number.isInteger(created));
  assertEquals(rest, {
    id: "cmpl-r1",
    object: "text_completion",
    model: "writer",
    choices: [{ index: 0, text: "a b c ", logprobs: null, finish_reason: "stop" }],
    usage: { prompt_tokens: 0, completion_tokens: 3, total_tokens: 3 },
  });
});

Deno.test("POST /v1/completions sends the text as it comes, then the reason of its end, the usage, [DONE]", async () => {
  await using server = await serve();
  const more = { stream: true, stream_options: { include_usage: true } };
  const all = await events(await complete(server, "a b", more));
  assertEquals(all.pop(), "[DONE]");
  assertEquals(
    all.map(({ id, object, model, created: _, ...rest }: Json) => [id, object, model, rest]),
    [
      [{ choices: [{ index: 0, text: "a ", logprobs: null, finish_reason: null }], usage: null }],
      [{ choices: [{ index: 0, text: "b ", logprobs: null, finish_reason: null }], usage: null }],
      [{ choices: [{ index: 0, text: "", logprobs: null, finish_reason: "stop" }], usage: null }],
      [{ choices: [], usage: { prompt_tokens: 0, completion_tokens: 2, total_tokens: 2 } }],
    ].map(([rest]) => ["cmpl-r1", "text_completion", "writer", rest]),
  );
  const plain = await events(await complete(server, "a", { stream: true }));
  assert(plain.slice(0, -1).every((event) => !("usage" in event)));
});

Deno.test("POST /v1/chat/completions answers with a message, or with its deltas", async () => {
  await using server = await serve();
  const whole = await (await say(server, "a b")).json();
  assertEquals([whole.id, whole.object, whole.choices, whole.usage.completion_tokens], [
    "chatcmpl-r1",
    "chat.completion",
    [{
      index: 0,
      message: { role: "assistant", content: "a b ", refusal: null },
      logprobs: null,
      finish_reason: "stop",
    }],
    2,
  ]);
  const all = await events(await say(server, "a b", { stream: true }));
  assertEquals(all.pop(), "[DONE]");
  assert(all.every(({ object }) => object === "chat.completion.chunk"));
  assertEquals(all.map(({ choices: [{ delta, finish_reason }] }) => [delta, finish_reason]), [
    [{ role: "assistant", content: "" }, null],
    [{ content: "a " }, null],
    [{ content: "b " }, null],
    [{}, "stop"],
  ]);
});

Deno.test("a chat gets the history that its request brings, in a session of its own that ends with it", async () => {
  await using server = await serve();
  log.length = 0;
  const history = [{ role: "system", content: "s" }, { role: "user", content: "u" }, {
    role: "assistant",
    content: "a",
  }];
  const messages = [...history, { role: "user", content: "history" }];
  for (let i = 0; i < 2; i++) {
    const { choices } = await (await say(server, "", { messages })).json();
    assertEquals(JSON.parse(choices[0].message.content), { turn: 1, history, state: { fresh: true } });
  }
  await settled();
  assertEquals(log, ["closed after 2: ended", "closed after 2: ended"]);
});

for (const [name, ask] of [["completions", complete], ["chat", say]] as const) {
  Deno.test(`${name}: a stop text ends the answer and the function, where pieces cut it too`, async () => {
    await using server = await serve();
    log.length = 0;
    const body = await (await ask(server, "two three four wait", { stop: ["o t"] })).json();
    const [{ message, text = message?.content, finish_reason }] = body.choices;
    assertEquals([text, finish_reason, body.usage.completion_tokens], ["tw", "stop", 2]);
    await settled();
    assertEquals(log[0], "ended two three four wait");
  });

  Deno.test(`${name}: max_tokens ends the answer and the function with "length"`, async () => {
    await using server = await serve();
    log.length = 0;
    const body = await (await ask(server, "a b c wait", { max_tokens: 2 })).json();
    const [{ message, text = message?.content, finish_reason }] = body.choices;
    assertEquals([text, finish_reason, body.usage.completion_tokens], ["a b ", "length", 2]);
    await settled();
    assertEquals(log[0], "ended a b c wait");
  });

  Deno.test(`${name}: a failure before the first text has its status, one after it is the last event`, async () => {
    await using server = await serve();
    for (const stream of [false, true]) {
      const response = await ask(server, "busy", { stream });
      assertEquals([response.status, response.headers.get("retry-after")], [429, "2"]);
      assertEquals((await response.json()).error, {
        message: "Too many",
        type: "rate_limit_error",
        param: null,
        code: "rate_limit_exceeded",
      });
    }
    const all = await events(await ask(server, "a fail", { stream: true }));
    const { error } = all.at(-1);
    assertEquals(error.type, "server_error");
    assertStringIncludes(error.message, "request id r1");
    assert(!error.message.includes("secret"));
    assertEquals((await ask(server, "a fail")).status, 500);
  });

  Deno.test(`${name}: a client that leaves ends the function`, async () => {
    await using server = await serve();
    log.length = 0;
    const response = await ask(server, "a wait", { stream: true });
    const reader = response.body!.getReader();
    assertStringIncludes(new TextDecoder().decode((await reader.read()).value), "data: ");
    await reader.cancel();
    await settled();
    assertEquals(log[0], "ended a wait");
  });

  Deno.test(`${name}: one that leaves before it reads anything does so too`, async () => {
    await using server = await serve();
    log.length = 0;
    const response = await ask(server, "a b wait", { stream: true });
    await response.body!.cancel();
    await settled();
    assertEquals(log[0], "ended a b wait");
  });
}

Deno.test("a request's signal ends the function while the client waits for its next text", async () => {
  const gone = new AbortController();
  await using server = await serve();
  log.length = 0;
  const response = await server.fetch(
    new Request("http://server/v1/completions", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "writer", prompt: "a wait", stream: true }),
      signal: gone.signal,
    }),
  );
  const reader = response.body!.getReader();
  await reader.read();
  const next = reader.read();
  await settled();
  assertEquals(log, []);
  gone.abort();
  await next;
  assertEquals(log, ["ended a wait"]);
});

Deno.test("a whole answer is bounded, and its function ends with its client though it never waits", async () => {
  await using server = await createTestServer(MODELS, { adapters: [openai], limits: { maxMessageBytes: 1000 } });
  log.length = 0;
  assertEquals(await failure(await complete(server, "endless")), [400, null, "max_tokens"]);
  await settled();
  assertEquals(log, ["ended endless"]);
  await using large = await serve();
  const gone = new AbortController();
  setTimeout(() => gone.abort(), 1);
  const response = await large.fetch(
    new Request("http://server/v1/completions", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "writer", prompt: "endless" }),
      signal: gone.signal,
    }),
  );
  assertEquals(response.status, 499);
});

Deno.test("a function that answers at once completes a text too", async () => {
  await using server = await serve();
  const { choices } = await (await post(server, "completions", { model: "upper", prompt: "hi" })).json();
  assertEquals(choices[0].text, "HI");
});

Deno.test("requests that cannot be answered say why", async () => {
  await using server = await serve();
  const messages = [{ role: "user", content: "x" }];
  assertEquals(await failure(await post(server, "completions", { model: "nobody", prompt: "x" })), [
    404,
    "model_not_found",
    "model",
  ]);
  const unsuited = [400, "model_not_supported", "model"] as const;
  assertEquals(await failure(await post(server, "completions", { model: "numbers", prompt: "x" })), unsuited);
  assertEquals(await failure(await post(server, "completions", { model: "talker", prompt: "x" })), unsuited);
  assertEquals(await failure(await post(server, "chat/completions", { model: "writer", messages })), unsuited);
  assertEquals(await failure(await post(server, "chat/completions", { messages })), [400, null, "model"]);
  assertEquals(await failure(await complete(server, "x", { temperature: "hot" })), [400, null, "temperature"]);
  assertEquals(await failure(await complete(server, "x", { n: 2 })), [400, "unsupported_value", "n"]);
  assertEquals((await post(server, "completions", [])).status, 400);
});

Deno.test("a handler gets its failure where nothing around it makes a response of it", async () => {
  const host = { catalog: { list: () => [] }, log: SILENT } as unknown as AdapterHost;
  const route = openai(host).http!.find(({ path }) => path === "/v1/completions")!;
  const http = { id: "r", signal: NEVER, readBody: () => Promise.resolve(new TextEncoder().encode("{}")) };
  const request = new Request("http://server/", { method: "POST" });
  await assertFails(
    "invalid_argument",
    "Cannot choose a model",
    async () => await route.handle(request, http as never),
  );
});
