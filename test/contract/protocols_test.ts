// What a caller may rely on whatever protocol it speaks: each case once, over every way to call a function that it fits.
// Which it does not fit, and why, is in test/harness/protocols/mod.ts.
import { defineModel, type ErrorCode, ModelError } from "tensorlet";
import { assertEquals, assertFalse, assertMatch, assertStringIncludes } from "tensorlet/assert";
import { createTestServer, type TestServer } from "tensorlet/testing";
import { FakeClock, settled } from "../harness/clock.ts";
import { call } from "../harness/messages.ts";
import { everyWay, waiter } from "../harness/protocols/functions.ts";
import { PROTOCOLS } from "../harness/protocols/mod.ts";
import type { Answer, Ask, CaseName, Protocol } from "../harness/protocols/protocol.ts";

const adder = everyWay(([a = 0, b = 0], { params: { scale } }) => (a + b) * scale);

/** google.rpc.Code's HTTP statuses, of the codes that the cases expect. */
const STATUSES: Readonly<Partial<Record<ErrorCode, number>>> = {
  invalid_argument: 400,
  not_found: 404,
  already_exists: 409,
  resource_exhausted: 429,
  cancelled: 499,
  internal: 500,
  unimplemented: 501,
  unavailable: 503,
  deadline_exceeded: 504,
};

function assertFailed({ code, message }: Answer, { instead }: Protocol, wanted: ErrorCode): string {
  assertEquals(code, typeof code === "number" ? instead?.[wanted]?.[0] ?? STATUSES[wanted] : wanted, message);
  return message;
}

type Case = (protocol: Protocol) => Promise<void>;
type Models = Parameters<typeof createTestServer>[0];

/** A case on a server of its own. */
function on(
  models: Models,
  action: (ask: (ask: Ask) => Promise<Answer>, protocol: Protocol, server: TestServer) => Promise<void>,
): Case {
  return async (protocol) => {
    await using server = await createTestServer(models);
    await action((ask) => protocol.ask(server, ask), protocol, server);
  };
}

const refused = (ask: Ask, code: ErrorCode, ...patterns: readonly RegExp[]): Case =>
  on({ adder }, async (asking, protocol) => {
    const message = assertFailed(await asking(ask), protocol, code);
    for (const pattern of patterns) assertMatch(message, pattern);
  });

const CASES: Readonly<Record<string, Case>> & Readonly<Record<CaseName, Case>> = {
  "the same function and input, the same answer": on({ adder }, async (ask) => {
    const { code, text, message } = await ask({ model: "adder", numbers: [1.5, 2] });
    assertEquals([code, text], ["ok", "3.5"], message);
  }),

  "calls at the same time keep apart": on({ adder }, async (ask) => {
    const numbers = Array.from({ length: 40 }, (_, i) => i);
    const answers = await Promise.all(numbers.map((i) => ask({ model: "adder", numbers: [i, i] })));
    assertEquals(answers.map(({ text }) => text), numbers.map((i) => `${2 * i}`));
  }),

  "a call that names no version goes to the newest, another to its own": async (protocol) => {
    const versions = ["1", "2"].map((version) => everyWay(() => Number(version), undefined, version));
    const served = versions.map((model, i) => [`file${i}`, defineModel({ ...model["~model"], name: "versioned" })]);
    await using server = await createTestServer(Object.fromEntries(served));
    for (const [model, text] of [["versioned", "2"], ["versioned@1", "1"], ["versioned@2", "2"]] as const) {
      assertEquals((await protocol.ask(server, { model })).text, text);
    }
  },

  "an unknown model": refused({ model: "addr" }, "not_found", /no model "addr"; the nearest name is "adder"/),
  "an unknown version": refused({ model: "adder@9" }, "not_found", /"adder" has no version "9", only "1"/),
  "a wrong dtype": refused({ model: "adder", dtype: "int32" }, "invalid_argument", /got.*int32/i, /float32|FP32/),
  "a wrong shape": refused({ model: "adder", numbers: [1, 2, 3] }, "invalid_argument", /\[3\]|3 values/, /\[2\]/),

  "params reach the function": on({ adder }, async (ask) => {
    const { text, message } = await ask({ model: "adder", params: { scale: 3 } });
    assertEquals(text, "9", message);
  }),
  "a param of a wrong type": refused(
    { model: "adder", params: { scale: "big" } },
    "invalid_argument",
    /"scale": got "big", wanted a number/,
  ),
  "an undeclared param": refused(
    { model: "adder", params: { other: "1" } },
    "invalid_argument",
    /"other": the function has only "prompt", "scale"/,
  ),

  "no such handler": async (protocol) => {
    const predicts = defineModel({ predict: () => [] });
    const streams = defineModel({ async *stream() {} });
    const chats = defineModel({ async *chat() {} });
    const lacking = { predict: streams, batch: streams, stream: chats, chat: predicts }[protocol.kind];
    await using server = await createTestServer({ lacking });
    const message = assertFailed(await protocol.ask(server, { model: "lacking" }), protocol, "unimplemented");
    assertStringIncludes(message, '"lacking"');
  },

  "a function's ModelError": on({
    taken: everyWay(() => {
      throw new ModelError("already_exists", "Cannot add: it is taken");
    }),
  }, async (ask, protocol) => {
    assertStringIncludes(
      assertFailed(await ask({ model: "taken" }), protocol, "already_exists"),
      "Cannot add: it is taken",
    );
  }),
  "a function's bug": async (protocol) => {
    const hostile = new Proxy({}, {
      get() {
        throw new Error("secret");
      },
    });
    for (const thrown of [new TypeError("secret"), "secret", null, hostile]) {
      const broken = everyWay(() => Promise.reject(thrown));
      await using server = await createTestServer({ broken });
      const answer = await protocol.ask(server, { model: "broken", requestId: "mine" });
      const message = assertFailed(answer, protocol, "internal");
      assertStringIncludes(message, "request id mine");
      assertFalse(message.includes("secret"), message);
    }
  },
  "a failure after the first piece": on({
    stops: everyWay(() => 0, async function* ([number]) {
      yield "1";
      if (number === 1) throw new ModelError("already_exists", "Cannot go on");
      throw new Error("secret");
    }),
  }, async (ask) => {
    const { code, text, message } = await ask({ model: "stops" });
    assertEquals([code === "ok", text, message], [false, "1", "Cannot go on"]);
    const bug = await ask({ model: "stops", numbers: [2, 2] });
    assertEquals([bug.code === "ok", bug.text, bug.message.includes("secret")], [false, "1", false], bug.message);
  }),

  "max_tokens": async (protocol) => {
    const ended = Promise.withResolvers<void>();
    const endless = everyWay(() => 0, async function* () {
      try {
        for (;;) yield "again ";
      } finally {
        ended.resolve();
      }
    });
    await using server = await createTestServer({ endless });
    assertEquals((await protocol.ask(server, { model: "endless", maxTokens: 3 })).text, "again again again ");
    await ended.promise;
  },

  "the caller's request id": async (protocol) => {
    let seen: string | undefined;
    const model = everyWay((_, { requestId }) => (seen = requestId, 0));
    await using server = await createTestServer({ model });
    const { requestId = "mine", message } = await protocol.ask(server, { model: "model", requestId: "mine" });
    assertEquals([requestId, seen], ["mine", "mine"], message);
  },

  "a client that leaves": async (protocol) => {
    const { model, started, ended } = waiter();
    await using server = await createTestServer({ model });
    const client = new AbortController();
    const left = protocol.ask(server, { model: "model", signal: client.signal });
    await started;
    client.abort();
    await ended;
    await left;
  },

  "the client's deadline": async (protocol) => {
    using clock = new FakeClock();
    const { model, started, ended } = waiter();
    await using server = await createTestServer({ model });
    const late = protocol.ask(server, { model: "model", timeoutMs: 50 });
    await started;
    await clock.advance(50);
    await ended;
    assertFailed(await late, protocol, "deadline_exceeded");
  },
  "the server's bound of a call": async (protocol) => {
    using clock = new FakeClock();
    const { model, started, ended } = waiter();
    await using server = await createTestServer({ model }, { limits: { unaryTimeoutMs: 50 } });
    const late = protocol.ask(server, { model: "model" });
    await started;
    await clock.advance(50);
    await ended;
    assertFailed(await late, protocol, "deadline_exceeded");
  },

  "a full queue": async (protocol) => {
    const { model, started } = waiter();
    await using server = await createTestServer({ model, adder }, { limits: { maxInFlight: 1, maxQueue: 0 } });
    const client = new AbortController();
    const first = protocol.ask(server, { model: "model", signal: client.signal });
    await started;
    const message = assertFailed(await protocol.ask(server, { model: "adder" }), protocol, "resource_exhausted");
    assertStringIncludes(message, "1 calls run (option maxInFlight)");
    client.abort();
    await first;
    assertEquals((await protocol.ask(server, { model: "adder" })).text, "3", "the place is free again");
  },

  "a client that leaves the queue": async (protocol) => {
    const { model, started } = waiter();
    await using server = await createTestServer({ model, adder }, { limits: { maxInFlight: 1, maxQueue: 1 } });
    const [client, other] = [new AbortController(), new AbortController()];
    const first = protocol.ask(server, { model: "model", signal: client.signal });
    await started;
    const second = protocol.ask(server, { model: "adder", signal: other.signal });
    await settled();
    other.abort();
    await second;
    const third = protocol.ask(server, { model: "adder" });
    await settled();
    client.abort();
    await first;
    assertEquals((await third).text, "3");
  },

  "a function that cannot be loaded": on({
    broken: defineModel({ ...adder["~model"], load: () => Promise.reject(new Error("secret")) }),
  }, async (ask, protocol) => {
    const message = assertFailed(await ask({ model: "broken" }), protocol, "unavailable");
    assertFalse(message.includes("secret"), message);
  }),
  "a function that was taken out of service": on({ adder }, async (ask, protocol, server) => {
    await call(server, "repositoryUnload", [{ model_name: "adder" }]);
    assertStringIncludes(assertFailed(await ask({ model: "adder" }), protocol, "unavailable"), '"adder"');
    await call(server, "repositoryLoad", [{ model_name: "adder" }]);
    assertEquals((await ask({ model: "adder" })).text, "3");
  }),
  "a server that has shut down": async (protocol) => {
    const server = await createTestServer({ adder });
    await server[Symbol.asyncDispose]();
    assertFailed(await protocol.ask(server, { model: "adder" }), protocol, "unavailable");
  },
};

for (const protocol of PROTOCOLS) {
  for (const [name, action] of Object.entries(CASES)) {
    if (!Object.hasOwn(protocol.unfit, name)) Deno.test(`${protocol.name}: ${name}`, () => action(protocol));
  }
}
