// Functions that fail in every way that they can, in workers and in processes of their own: their own calls pay for it,
// other functions' calls do not notice, and the function works again.
import type { ServeOptions } from "tensorlet";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "tensorlet/assert";
import { answer, collect, metadata } from "../harness/grpc_client.ts";
import { type Folder, serveFolder } from "../harness/served_folder.ts";

const OK = `
import { defineModel } from "tensorlet";
export default defineModel({ predict: ([x]) => x });
`;

// A function that does \`fault\` when its first value is 1, and answers its input else.
const faulty = (fault: string, more = "") => `
import { defineModel, ModelError } from "tensorlet";
let called = 0;
export default defineModel({
  ${more}
  async predict([x], ctx) {
    called++;
    if (x.data[0] === 1) { ${fault} }
    return x;
  },
  async *stream(_inputs, ctx) { ${fault}; yield "end"; },
  async *chat(_message, ctx) { ${fault}; yield "end"; },
});
`;

const LEVELS = ["worker", "process"] as const;
type Level = typeof LEVELS[number];

interface Outcome {
  readonly code: number;
  readonly message: string;
  readonly output: readonly number[];
}

const SERVING = 1, NOT_SERVING = 2;
const OK_CODE = 0, UNKNOWN = 2, DEADLINE = 4, EXHAUSTED = 8, INTERNAL = 13, UNAVAILABLE = 14;

async function outcome(call: Promise<{ readonly output_tensor: readonly number[] }>): Promise<Outcome> {
  try {
    return { code: OK_CODE, message: "", output: (await call).output_tensor };
  } catch (error) {
    return { code: (error as { code: number }).code, message: (error as Error).message, output: [] };
  }
}

function predict({ v1 }: Folder, model_id: string, values: readonly number[], timeoutMs = 20_000): Promise<Outcome> {
  const options = { deadline: Date.now() + timeoutMs };
  return outcome(answer((done) => v1.Predict({ model_id, input_tensor: values }, options, done)));
}

function serveFaulty(level: Level, file: string, settings: object = {}, options: ServeOptions = {}): Promise<Folder> {
  const functions = { "*": { isolation: level, graceMs: 200 }, bad: { isolation: level, graceMs: 200, ...settings } };
  return serveFolder({ "bad.ts": file, "ok.ts": OK, "functions.json": JSON.stringify(functions) }, options);
}

// Calls of another function from now until \`over\`: every one must be right.
async function neighbours(served: Folder, over: Promise<unknown>): Promise<number> {
  let running = true;
  over.finally(() => running = false);
  let calls = 0;
  while (running || calls < 5) {
    assertEquals(await predict(served, "ok", [7]), { code: OK_CODE, message: "", output: [7] });
    calls++;
  }
  return calls;
}

const logOf = (served: Folder) =>
  served.logs.map(({ message, fields }) => `${message} ${Deno.inspect(fields)}`).join("\n");

interface Fault {
  readonly name: string;
  readonly code: string;
  /** Of the call that does it. */
  readonly status: number;
  readonly settings?: object;
  /** What the log says. */
  readonly log?: RegExp;
  /** A message that the log will have. */
  readonly logged?: RegExp;
  readonly only?: Level;
  /** It harms its own instance for good. */
  readonly forGood?: true;
}

const FAULTS: readonly Fault[] = [
  { name: "throws", code: `throw new Error("secret detail");`, status: INTERNAL, log: /secret detail/ },
  { name: "throws no error", code: `throw { toString() { throw 1 } };`, status: INTERNAL },
  {
    name: "rejects a promise that nobody awaits",
    code: `Promise.reject(new Error("stray")); await new Promise(() => {});`,
    status: UNAVAILABLE,
    log: /crashed[^]*stray/,
  },
  {
    name: "throws in a timer",
    code: `setTimeout(() => { throw new Error("late") }, 1); await new Promise(() => {});`,
    status: UNAVAILABLE,
    log: /crashed[^]*late/,
  },
  { name: "closes itself", code: `self.close(); await new Promise(() => {});`, status: UNAVAILABLE, log: /ended/ },
  { name: "exits", code: `Deno.exit(3);`, status: UNAVAILABLE, log: /ended/ },
  {
    name: "exits by process.exit()",
    code: `(await import("node:process")).default.exit(4);`,
    status: UNAVAILABLE,
    log: /ended/,
  },
  { name: "ignores its abort", code: `await new Promise(() => {});`, status: DEADLINE, logged: /ignored an abort/ },
  {
    name: "answers with what no message carries",
    code: `return { dtype: "float32", shape: [1], data: () => 1 };`,
    status: INTERNAL,
  },
  {
    name: "gives an error details that no message carries",
    code: `throw new ModelError("aborted", "no", { details: { f: () => 1, s: Symbol("x") } });`,
    status: 10,
  },
  {
    name: "logs what no message carries",
    code: `const a = {}; a.a = a; ctx.log.warn("odd", { a, f: () => 1, big: "x".repeat(1e6) });`,
    status: OK_CODE,
  },
  {
    name: "pollutes prototypes",
    code:
      `Object.prototype.type = "reply"; Object.prototype.id = 1; Array.prototype.push = () => { throw new Error("no push") };`,
    status: UNKNOWN,
    forGood: true,
  },
  {
    name: "replaces globals",
    code:
      `globalThis.postMessage = undefined; globalThis.setTimeout = undefined; globalThis.Promise = undefined; globalThis.structuredClone = () => { throw 1 };`,
    status: UNKNOWN,
  },
  ...[
    `{ type: "reply", id: 1, reply: null, end: true }`,
    `{ type: "end", id: 1, error: { code: "none" } }`,
    `{ type: "log", level: "nothing", message: 5 }`,
    `{ type: "done", id: 7, error: 5 }`,
    `{ type: "described", description: 3 }`,
    `{ type: "no such type" }`,
    `null`,
    `"text"`,
    `new Uint8Array(3)`,
  ].map((message): Fault => ({
    name: `posts ${message}`,
    code: `postMessage(${message}); await new Promise((resolve) => setTimeout(resolve, 1));`,
    status: UNKNOWN,
    only: "worker",
  })),
  {
    name: "takes more heap than it has",
    code: `const all = []; for (;;) all.push(new Array(1000).fill({}));`,
    status: EXHAUSTED,
    settings: { heapMb: 64 },
    log: /out of memory/,
    only: "process",
  },
  { name: "never ends", code: `for (;;);`, status: DEADLINE, logged: /ignored an abort/, only: "process" },
];

for (const level of LEVELS) {
  for (const { name, code, status, settings, log, logged, only, forGood } of FAULTS) {
    if (only !== undefined && only !== level) continue;
    Deno.test(`a function in a ${level} that ${name}`, async () => {
      await using served = await serveFaulty(level, faulty(code), settings);
      assertEquals((await predict(served, "bad", [0])).code, OK_CODE);
      const fault = predict(served, "bad", [1], status === DEADLINE ? 300 : undefined);
      await neighbours(served, fault);
      const { code: got, message } = await fault;
      if (status !== UNKNOWN) assertEquals(got, status, message);
      assert(!/secret|stray|late/.test(message), message);
      if (logged) await served.logged(logged);
      if (forGood) return;
      // It works again, in another instance where this one is gone.
      for (let tries = 0;; tries++) {
        const again = await predict(served, "bad", [0], 5_000);
        if (again.code === OK_CODE) break;
        assert(tries < 20 && [UNAVAILABLE, DEADLINE, INTERNAL].includes(again.code), again.message);
      }
      if (log) assertMatch(logOf(served), log);
    });
  }

  for (
    const [what, file, why] of [
      ["throws at import", `throw new Error("at import");`, /at import/],
      ["throws in load", faulty("", `load() { throw new Error("no weights"); },`), /no weights/],
      ["never ends its load", faulty("", "load: () => new Promise(() => {}),"), /loadTimeoutMs/],
      ["exits in load", faulty("", "load() { Deno.exit(1); },"), /ended/],
    ] as const
  ) {
    Deno.test(`a function in a ${level} that ${what} is unavailable, and recovers when its file changes`, async () => {
      await using served = await serveFaulty(level, file, { loadTimeoutMs: 1_000 });
      const fault = predict(served, "bad", [0]);
      await neighbours(served, fault);
      const { code, message } = await fault;
      assertEquals(code, UNAVAILABLE, message);
      assertStringIncludes(message, 'Function "bad" cannot be loaded');
      assertMatch(logOf(served), why);
      await served.write({ "bad.ts": faulty("") });
      await served.server.reload();
      assertEquals((await predict(served, "bad", [5])).output, [5]);
    });
  }

  Deno.test(`a crash in a ${level} costs the other calls of that instance, and no others`, async () => {
    await using served = await serveFaulty(
      level,
      faulty(`if (called > 2) Promise.reject(new Error("stray")); await new Promise(() => {});`),
    );
    const first = predict(served, "bad", [1]);
    const second = predict(served, "bad", [1]);
    const third = predict(served, "bad", [1]);
    await neighbours(served, third);
    const codes = (await Promise.all([first, second, third])).map(({ code }) => code);
    assertEquals(codes, [UNAVAILABLE, UNAVAILABLE, UNAVAILABLE]);
    assertEquals((await predict(served, "bad", [2])).output, [2]);
  });

  Deno.test(`calls of a ${level} end when one handler ignores its abort but its event loop is free`, async () => {
    await using served = await serveFaulty(
      level,
      faulty("await new Promise(() => {});").replace('yield "end";', "").replace(
        "await new Promise(() => {});; ",
        "for (let i = 0; i < 400; i++) { yield `t${i}`; await new Promise((resolve) => setTimeout(resolve, 1)); }",
      ),
    );
    const stream = collect<{ token: string }>(served.v1.StreamPredict({ model_id: "bad" }));
    const { code } = await predict(served, "bad", [1], 100);
    assertEquals(code, DEADLINE);
    const tokens = await stream;
    assertEquals(tokens.length, 401); // with the empty last one
  });

  Deno.test(`a function in a ${level} may keep what it gets and what it answers`, async () => {
    const file = `
import { defineModel } from "tensorlet";
const table = new Float32Array(10_000).fill(7);
let kept;
export default defineModel({
  predict([x]) {
    if (x.data[0] === 1) { kept ??= x; return kept; }
    return { dtype: "float32", shape: [5_000], data: table.subarray(5_000) };
  },
});
`;
    await using served = await serveFaulty(level, file);
    const large = Array.from({ length: 8_000 }, (_, i) => i + 1);
    for (let i = 0; i < 3; i++) {
      const { output } = await predict(served, "bad", [0]);
      assertEquals([output.length, output[0], output.at(-1)], [5_000, 7, 7]);
      assertEquals((await predict(served, "bad", large)).output, large);
    }
  });

  Deno.test(`a session's state of maps and dates survives in a ${level}`, async () => {
    const file = `
import { defineModel } from "tensorlet";
export default defineModel({
  session: { init: () => ({ seen: new Map(), since: new Date(0), big: 1n }) },
  async *chat(message, ctx) {
    const { state } = ctx.session;
    state.seen.set(message.content, (state.seen.get(message.content) ?? 0) + 1);
    state.big *= 2n ** 40n;
    yield JSON.stringify([[...state.seen], state.since.getTime(), String(state.big)]);
  },
});
`;
    await using served = await serveFaulty(level, file);
    const call = served.v1.ChatStream(metadata({ "model-id": "bad" }));
    for (const content of ["a", "b", "a"]) call.write({ session_id: "s", content });
    call.end();
    const pieces = await collect<{ content: string }>(call);
    assertEquals(pieces.at(-1)!.content, '[[["a",2],["b",1]],0,"1329227995784915872903807060280344576"]');
  });
}

Deno.test("a function that keeps dying is failed in health and status, and works again when its file changes", async () => {
  await using served = await serveFaulty(
    "worker",
    faulty("await new Promise(() => {});", "load() { setTimeout(() => { throw new Error('dies') }, 1); },"),
  );
  const status = () => served.server.status().find(({ name }) => name === "bad")!.state;
  const health = () =>
    answer<{ status: string | number }>((done) => served.health.Check({ service: "bad" }, done)).then(({ status }) =>
      status
    );
  for (let i = 0; i < 50 && status() !== "failed"; i++) await predict(served, "bad", [1], 2_000);
  assertEquals(status(), "failed");
  assertEquals(await health(), NOT_SERVING);
  assertEquals((await predict(served, "ok", [1])).output, [1]);
  await served.write({ "bad.ts": faulty("") });
  await served.server.reload();
  assertEquals((await predict(served, "bad", [5])).output, [5]);
  assertEquals(await health(), SERVING);
});

Deno.test("a function that logs without an end is cut short, and holds nobody up", async () => {
  await using served = await serveFaulty("worker", faulty("for (let i = 0; i < 200_000; i++) ctx.log.info('line');"));
  const flood = predict(served, "bad", [1]);
  await neighbours(served, flood);
  assertEquals((await flood).code, OK_CODE);
  const lines = served.logs.filter(({ message }) => message === "line").length;
  assert(lines >= 1_000 && lines <= 20_000, `${lines} lines`);
});

Deno.test("calls beyond an instance's places and its queue are refused at once, the others answered in turn", async () => {
  const settings = { concurrency: 1, queue: 3 };
  const file = faulty("await new Promise((resolve) => setTimeout(resolve, 20));");
  await using served = await serveFaulty("worker", file, settings);
  await predict(served, "bad", [0]); // it is loaded
  const outcomes = await Promise.all(Array.from({ length: 200 }, () => predict(served, "bad", [1])));
  const answered = outcomes.filter(({ code }) => code === OK_CODE).length;
  const refused = outcomes.filter(({ code }) => code === EXHAUSTED);
  assert(answered >= 4, `${answered} answered`);
  assertEquals(answered + refused.length, 200);
  assertStringIncludes(
    refused[0]!.message,
    "1 instances run 1 calls each (option concurrency) and 3 wait (option queue)",
  );
});

Deno.test("values of interceptors reach functions in workers", async () => {
  const { createContextKey, withValue } = await import("tensorlet");
  const tenant = createContextKey("tenant", "nobody");
  const file = `
import { createContextKey, defineModel } from "tensorlet";
const tenant = createContextKey("tenant", "nobody");
export default defineModel({ async *stream(_inputs, ctx) { yield ctx.values.get(tenant); } });
`;
  await using served = await serveFaulty("worker", file, {}, {
    interceptors: [(next) => (call) => next({ ...call, values: withValue(call.values, tenant, "acme") })],
  });
  const tokens = await collect<{ token: string }>(served.v1.StreamPredict({ model_id: "bad" }));
  assertEquals(tokens[0]!.token, "acme");
});
