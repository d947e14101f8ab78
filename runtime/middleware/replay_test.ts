import { assert, assertEquals } from "tensorlet/assert";
import { assertFails, collect, NEVER, recordLog, SILENT, streamCall, textsOf } from "../../test/harness/calls.ts";
import { FakeClock, settled } from "../../test/harness/clock.ts";
import type { Call, Invoke, Reply, StreamCall } from "../core/call.ts";
import { ModelError } from "../core/error.ts";
import { abortable } from "../core/signal.ts";
import { tensor } from "../core/tensor.ts";
import { deadline } from "./deadline.ts";
import { DEFAULT_REPLAY_LIMITS, type OtherReplays, Replays, type ReplaysOptions } from "./replay.ts";

// A function whose tokens come when the test says so, or as fast as they are taken.
class Source {
  readonly calls: StreamCall[] = [];
  readonly #count: number;
  readonly #isStepped: boolean;
  readonly #failure: unknown;
  given = 0;
  ended = 0;
  #gate = Promise.withResolvers<void>();

  constructor(count: number, isStepped = false, failure?: unknown) {
    this.#count = count;
    this.#isStepped = isStepped;
    this.#failure = failure;
  }

  readonly invoke: Invoke = (call: Call) => this.#run(call as StreamCall);

  /** Lets one more token go. */
  step(): Promise<void> {
    this.#gate.resolve();
    return settled();
  }

  async *#run(call: StreamCall): AsyncGenerator<Reply, void, undefined> {
    this.calls.push(call);
    try {
      for (let index = 0; index < this.#count; index++) {
        if (this.#isStepped) {
          await abortable(this.#gate.promise, call.signal);
          this.#gate = Promise.withResolvers();
        }
        this.given++;
        yield { type: "delta", index, text: `t${index}` };
      }
      if (this.#failure !== undefined) throw this.#failure;
    } finally {
      this.ended++;
    }
  }
}

function create(options: Partial<ReplaysOptions> = {}): Replays {
  const times = { unaryTimeoutMs: 1000 };
  return new Replays({ ...DEFAULT_REPLAY_LIMITS, deadline: deadline(times), log: SILENT, ...options });
}

const named = (options: Partial<StreamCall> = {}) => streamCall({ id: "r", resumable: true, ...options });
const resumed = (resumeFrom: number, options: Partial<StreamCall> = {}) =>
  streamCall({ id: "r", resumeFrom, ...options });
const tokens = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => `t${from + i}`);

// Reads `count` tokens and leaves.
async function read(replies: AsyncIterable<Reply>, count: number): Promise<string[]> {
  const got: Reply[] = [];
  for await (const reply of replies) if (got.push(reply) === count) break;
  return textsOf(got);
}

Deno.test("Replays: a call without an id of its caller's passes as it is", async () => {
  const replays = create();
  const source = new Source(3);
  const invoke = replays.interceptor(source.invoke);
  assertEquals(textsOf(await collect(invoke(streamCall()))), tokens(0, 3));
  assertEquals([replays.size, replays.bytes], [0, 0]);
});

Deno.test("Replays: what has ended is replayed from any index on, and the function runs once", async () => {
  using clock = new FakeClock();
  const replays = create();
  const source = new Source(5);
  const invoke = replays.interceptor(source.invoke);
  assertEquals(textsOf(await collect(invoke(named()))), tokens(0, 5));
  for (let from = 0; from <= 5; from++) {
    assertEquals(textsOf(await collect(invoke(resumed(from)))), tokens(from, 5));
  }
  assertEquals(source.calls.length, 1);
  await clock.advance(60_000);
  assertEquals([replays.size, replays.bytes, clock.armed], [0, 0, 0]);
  await assertFails("not_found", '"r"', () => collect(invoke(resumed(0))));
});

Deno.test("Replays: the time that a call is kept begins with its last reader's end", async () => {
  using clock = new FakeClock();
  const replays = create();
  const invoke = replays.interceptor(new Source(5).invoke);
  await collect(invoke(named()));
  await clock.advance(59_999);
  const reader = invoke(resumed(0))[Symbol.asyncIterator]();
  await reader.next();
  await clock.advance(60_000);
  assertEquals(replays.size, 1);
  await reader.return?.();
  await clock.advance(59_999);
  assertEquals(replays.size, 1);
  await clock.advance(1);
  assertEquals(replays.size, 0);
});

Deno.test("Replays: a reader that left comes back to a function that still runs", async () => {
  using _clock = new FakeClock();
  const replays = create();
  const source = new Source(6, true);
  const invoke = replays.interceptor(source.invoke);
  const first = read(invoke(named()), 2);
  await source.step();
  await source.step();
  assertEquals(await first, tokens(0, 2));
  await source.step(); // nobody reads
  assertEquals([source.given, source.ended], [3, 0]);
  const second = collect(invoke(resumed(1)));
  for (let i = 0; i < 3; i++) await source.step();
  assertEquals(textsOf(await second), tokens(1, 6));
  assertEquals(source.calls.length, 1);
  replays.close();
});

Deno.test("Replays: a call without a reader is aborted after the resume window, and its id is free again", async () => {
  using clock = new FakeClock();
  const replays = create({ resumeWindowMs: 500 });
  const source = new Source(6, true);
  const invoke = replays.interceptor(source.invoke);
  const first = read(invoke(named()), 1);
  await source.step();
  await first;
  await clock.advance(499);
  assertEquals([source.ended, source.calls[0]!.signal.aborted], [0, false]);
  await clock.advance(1);
  assertEquals([source.ended, source.calls[0]!.signal.aborted], [1, true]);
  await assertFails("not_found", "nothing is kept", () => collect(invoke(resumed(1))));
  assertEquals([replays.size, replays.bytes, clock.armed], [0, 0, 0]);
  assertEquals(await read(replays.interceptor(new Source(1).invoke)(named()), 1), ["t0"]);
  replays.close();
});

Deno.test("Replays: an abort of the reader leaves the call alone", async () => {
  using _clock = new FakeClock();
  const replays = create();
  const source = new Source(3, true);
  const invoke = replays.interceptor(source.invoke);
  const controller = new AbortController();
  const first = assertFails("cancelled", "", () => collect(invoke(named({ signal: controller.signal }))));
  await source.step();
  controller.abort();
  await first;
  const second = collect(invoke(resumed(1)));
  await source.step();
  await source.step();
  assertEquals(textsOf(await second), tokens(1, 3));
  replays.close();
});

Deno.test("Replays: a reader's deadline ends the reader; the call has that of its first request", async () => {
  using clock = new FakeClock();
  const replays = create();
  const source = new Source(3, true);
  const invoke = replays.interceptor(deadline({ unaryTimeoutMs: 1 })(source.invoke));
  const start = Date.now();
  const first = assertFails("aborted", "another reader", () => collect(invoke(named({ deadline: start + 2000 }))));
  await source.step();
  const second = assertFails("deadline_exceeded", "", () => collect(invoke(resumed(1, { deadline: start + 1000 }))));
  await first;
  await clock.advance(1000);
  await second;
  assertEquals(source.calls[0]!.signal.aborted, false);
  await clock.advance(1000);
  assertEquals(source.ended, 1);
  await assertFails("deadline_exceeded", "", () => collect(invoke(resumed(1)))); // what it came to is kept too
  replays.close();
});

Deno.test("Replays: the same id again is refused, that of another function is another", async () => {
  using _clock = new FakeClock();
  const replays = create();
  const invoke = replays.interceptor(new Source(2).invoke);
  await collect(invoke(named()));
  const error = await assertFails("already_exists", '"r"', () => collect(invoke(named())));
  assert(error.message.includes("resume_from"));
  assertEquals(textsOf(await collect(invoke(named({ model: "other" })))), tokens(0, 2));
  replays.close();
});

Deno.test("Replays: a call that failed before its first token can be sent again", async () => {
  using clock = new FakeClock();
  const replays = create();
  const busy = new ModelError("resource_exhausted", "busy");
  await assertFails(
    "resource_exhausted",
    "busy",
    () => collect(replays.interceptor(new Source(0, false, busy).invoke)(named())),
  );
  const refuse: Invoke = () => {
    throw busy;
  };
  await assertFails("resource_exhausted", "busy", () => collect(replays.interceptor(refuse)(named())));
  assertEquals([replays.size, clock.armed], [0, 0]);
  assertEquals(textsOf(await collect(replays.interceptor(new Source(2).invoke)(named()))), tokens(0, 2));
  replays.close();
});

Deno.test("Replays: a failure is replayed behind the tokens before it", async () => {
  using _clock = new FakeClock();
  const replays = create();
  const invoke = replays.interceptor(new Source(2, false, new ModelError("aborted", "lost")).invoke);
  for (const call of [named(), resumed(1)]) {
    const got: Reply[] = [];
    await assertFails("aborted", "lost", async () => {
      for await (const reply of invoke(call)) got.push(reply);
    });
    assertEquals(textsOf(got), tokens(call.resumeFrom ?? 0, 2));
  }
  replays.close();
});

Deno.test("Replays: a failure that nobody reads is logged", async () => {
  using _clock = new FakeClock();
  const { log, records } = recordLog();
  const replays = create({ log });
  const source = new Source(2, true, new Error("secret"));
  const first = read(replays.interceptor(source.invoke)(named()), 1);
  await source.step();
  await first;
  await source.step();
  assertEquals(records.map(({ level, fields }) => [level, (fields.cause as Error).message]), [["error", "secret"]]);
  replays.close();
});

Deno.test("Replays: the newest tokens are kept; the error says where they begin", async () => {
  using _clock = new FakeClock();
  const replays = create({ replayMaxTokens: 10 });
  const invoke = replays.interceptor(new Source(100).invoke);
  assertEquals((await collect(invoke(named()))).length, 100);
  const error = await assertFails("out_of_range", "from token 3:", () => collect(invoke(resumed(3))));
  const first = Number(/token (\d+) on/.exec(error.message)![1]);
  assert(first >= 90, error.message);
  assertEquals(textsOf(await collect(invoke(resumed(first)))), tokens(first, 100));
  await assertFails("out_of_range", "has 100 so far", () => collect(invoke(resumed(101))));
  replays.close();
});

Deno.test("Replays: the bytes of a call are bounded", async () => {
  using _clock = new FakeClock();
  const replays = create({ replayMaxBytes: 10_000 });
  const large: Invoke = async function* () {
    for (let index = 0; index < 50; index++) {
      yield { type: "tensors", index, output: { x: tensor("uint8", new Uint8Array(1000)) } };
    }
  };
  assertEquals((await collect(replays.interceptor(large)(named()))).length, 50);
  assert(replays.bytes > 5000 && replays.bytes <= 10_000, `${replays.bytes}`);
  replays.close();
  assertEquals(replays.bytes, 0);
});

Deno.test("Replays: tokens that were taken long ago are forgotten while the call runs", async () => {
  using clock = new FakeClock();
  const replays = create();
  const source = new Source(3, true);
  const invoke = replays.interceptor(source.invoke);
  const reader = invoke(named())[Symbol.asyncIterator]();
  for (let i = 0; i < 2; i++) {
    const next = reader.next();
    await source.step();
    await next;
    await clock.advance(40_000);
  }
  const last = reader.next();
  await source.step();
  await last;
  await reader.return?.();
  await assertFails("out_of_range", "from token 1 on", () => collect(invoke(resumed(0))));
  replays.close();
});

Deno.test("Replays: the function is never far ahead of its reader, and fills half the window without one", async () => {
  using _clock = new FakeClock();
  const replays = create({ replayMaxTokens: 100 });
  const source = new Source(1000);
  const invoke = replays.interceptor(source.invoke);
  const reader = invoke(named())[Symbol.asyncIterator]();
  for (let i = 0; i < 30; i++) await reader.next();
  await settled();
  assert(source.given < 30 + 20, `${source.given}`);
  await reader.return?.();
  await settled();
  assert(source.given >= 30 + 50 && source.given < 30 + 55, `${source.given}`);
  // What the first reader may not have got is still there.
  assertEquals(textsOf(await collect(invoke(resumed(5)))).length, 995);
  replays.close();
});

Deno.test("Replays: a reader that comes back takes the call from one that is only thought to read", async () => {
  using _clock = new FakeClock();
  const replays = create();
  const source = new Source(4, true);
  const invoke = replays.interceptor(source.invoke);
  const old = assertFails("aborted", "another reader", () => collect(invoke(named())));
  await source.step();
  const fresh = collect(invoke(resumed(0)));
  await old;
  for (let i = 0; i < 3; i++) await source.step();
  assertEquals(textsOf(await fresh), tokens(0, 4));
  replays.close();
});

Deno.test("Replays: beyond the bytes of all, the oldest that ended go first", async () => {
  using _clock = new FakeClock();
  const replays = create({ replayMaxTotalBytes: 3000 });
  for (let i = 0; i < 20; i++) await collect(replays.interceptor(new Source(10).invoke)(named({ id: `r${i}` })));
  assert(replays.bytes <= 3000, `${replays.bytes}`);
  const invoke = replays.interceptor(new Source(10).invoke);
  assertEquals((await collect(invoke(resumed(0, { id: "r19" })))).length, 10);
  await assertFails("not_found", "", () => collect(invoke(resumed(0, { id: "r0" }))));
  replays.close();
});

Deno.test("Replays: where nothing else can go, what readers have had goes, and calls go on", async () => {
  using _clock = new FakeClock();
  const replays = create({ replayMaxTotalBytes: 2000 });
  const readers = ["a", "b", "c"].map((id) =>
    replays.interceptor(new Source(200).invoke)(named({ id }))[Symbol.asyncIterator]()
  );
  for (let i = 0; i < 200; i++) {
    for (const reader of readers) assertEquals((await reader.next()).value, { type: "delta", index: i, text: `t${i}` });
  }
  for (const reader of readers) assertEquals((await reader.next()).done, true);
  assert(replays.bytes <= 2000 + 3 * 20 * 210, `${replays.bytes}`);
  replays.close();
});

Deno.test("Replays: close() aborts what nobody reads", async () => {
  using clock = new FakeClock();
  const replays = create();
  const source = new Source(3, true);
  const first = read(replays.interceptor(source.invoke)(named({ signal: NEVER })), 1);
  await source.step();
  await first;
  replays.close();
  await settled();
  assertEquals([source.ended, replays.size, replays.bytes, clock.armed], [1, 0, 0, 0]);
  assert((source.calls[0]!.signal.reason as Error).message.includes("shutting down"));
});

Deno.test("Replays: what is not kept here is asked for elsewhere, and given out to others who ask", async () => {
  const [here, there] = [new Source(5), new Source(5)].map((source) => {
    const replays: Replays = create({ others: { find: (key, from, signal) => find(key, from, signal) } });
    return { source, replays, invoke: replays.interceptor(source.invoke) };
  });
  const find: OtherReplays["find"] = (...asked) => Promise.resolve(there!.replays.open(...asked));
  await collect(there!.invoke(named()));
  assertEquals(textsOf(await collect(here!.invoke(resumed(3)))), ["t3", "t4"]);
  await assertFails("out_of_range", "from token 9", () => collect(here!.invoke(resumed(9))));
  await assertFails("not_found", "nothing is kept", () => collect(here!.invoke(resumed(0, { id: "other" }))));
  assertEquals([here!.source.calls.length, there!.source.calls.length, here!.replays.size], [0, 1, 0]);
  here!.replays.close();
  there!.replays.close();
});
