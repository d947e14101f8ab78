import { assert, assertEquals } from "tensorlet/assert";
import { assertFails, collect, floats, predictCall, streamCall } from "../../test/harness/calls.ts";
import { FakeClock, settled } from "../../test/harness/clock.ts";
import type { BatchCall, Call, Invoke, PredictCall, Reply } from "../core/call.ts";
import { type BatchingOptions, defineModel, resolveModel } from "../core/define.ts";
import { ModelError } from "../core/error.ts";
import type { Observer } from "../core/observer.ts";
import type { NamedTensors } from "../core/tensor.ts";
import { batching } from "./batching.ts";

// A function that answers each request with its own input when the test lets it. -1 fails alone, -2 has no answer.
class Echo {
  readonly calls: (PredictCall | BatchCall)[] = [];
  readonly #gates: PromiseWithResolvers<void>[] = [];
  hasRoom = true;
  instances = 1;

  /** The requests of each call so far. */
  get sizes(): number[] {
    return this.calls.map((call) => call.kind === "batch" ? call.items.length : 1);
  }

  /** Ends the oldest call that runs. */
  async end(error?: unknown): Promise<void> {
    const gate = this.#gates.shift()!;
    if (error === undefined) gate.resolve();
    else gate.reject(error);
    await settled();
  }

  readonly invoke: Invoke = (call: Call) => this.#run(call as PredictCall | BatchCall);

  async *#run(call: PredictCall | BatchCall): AsyncGenerator<Reply, void, undefined> {
    this.calls.push(call);
    const gate = Promise.withResolvers<void>();
    this.#gates.push(gate);
    await gate.promise;
    const inputs = call.kind === "batch" ? call.items.map(({ input }) => input) : [call.input];
    for (const [index, output] of inputs.entries()) {
      const value = output["0"]!.data[0];
      if (value === -1) yield { type: "failure", index, error: new ModelError("invalid_argument", "bad") };
      else if (value !== -2) yield { type: "tensors", index, output };
    }
  }
}

function create(options: BatchingOptions | null = { maxSize: 8, maxDelayMs: 5 }, observer?: Observer) {
  const model = resolveModel(
    defineModel({ ...options && { batching: options }, batch: (items) => items.map(() => []), predict: () => [] }),
    "model",
  );
  const entry = { ...model, state: "ready", revision: 1 } as const;
  const echo = new Echo();
  const invoke = batching({
    find: () => entry,
    roomOf: () => ({ instances: echo.instances, hasRoom: echo.hasRoom }),
    observer,
  })(echo.invoke);
  const ask = async (value: number, options: Partial<PredictCall> = {}): Promise<number> => {
    const replies = await collect(invoke(predictCall({ id: `r${value}`, input: floats(value), ...options })));
    const [reply] = replies as unknown as [{ readonly output: NamedTensors }];
    return reply.output["0"]!.data[0] as number;
  };
  return { echo, ask, invoke };
}

Deno.test("batching() leaves calls alone that are not to be gathered", async () => {
  const { echo } = create();
  const plain = create(null);
  const answers = [plain.ask(1), plain.ask(2)];
  await settled();
  assertEquals(plain.echo.sizes, [1, 1]);
  await plain.echo.end();
  await plain.echo.end();
  assertEquals(await Promise.all(answers), [1, 2]);
  const stream = collect(
    batching({ find: () => ({}) as never, roomOf: () => ({}) as never })(echo.invoke)(streamCall({ input: floats(3) })),
  );
  await settled();
  await echo.end();
  assertEquals((await stream).length, 1);
});

Deno.test("batching() never lets a lone caller wait", async () => {
  using clock = new FakeClock();
  const { echo, ask } = create();
  for (let i = 1; i <= 5; i++) {
    const answer = ask(i);
    await settled();
    assertEquals([echo.calls.length, clock.armed], [i, 0]);
    assertEquals(echo.calls.at(-1)!.kind, "predict");
    await echo.end();
    assertEquals(await answer, i);
  }
});

Deno.test("batching() makes one batch of what came while another ran, each caller with its own answer", async () => {
  using clock = new FakeClock();
  const { echo, ask } = create();
  const answers = [1, 2, 3, 4, 5].map((value) => ask(value));
  await settled();
  assertEquals(echo.sizes, [1]);
  await echo.end();
  assertEquals(echo.sizes, [1, 4]);
  const batch = echo.calls[1] as BatchCall;
  assertEquals([batch.id, batch.gathered, batch.items.map(({ id }) => id)], ["r2+3", true, ["r2", "r3", "r4", "r5"]]);
  await echo.end();
  assertEquals(await Promise.all(answers), [1, 2, 3, 4, 5]);
  assertEquals(clock.armed, 0);
});

Deno.test("batching() tells its observer of a batch and its members, and when each of these came", async () => {
  using _clock = new FakeClock();
  const batches: string[][] = [];
  const { echo, ask } = create(undefined, {
    onBatch: ({ id }, members) => batches.push([id, ...members.map((member) => member.id)]),
  });
  const answers = [1, 2, 3].map((value) => ask(value, { receivedAt: 10 * value }));
  await settled();
  assertEquals(batches, []);
  await echo.end();
  assertEquals(batches, [["r2+1", "r2", "r3"]]);
  assertEquals((echo.calls[1] as BatchCall).items.map(({ receivedAt }) => receivedAt), [20, 30]);
  await echo.end();
  await Promise.all(answers);
});

Deno.test("batching() expects as many as came together the last time, and waits for them no longer than the delay", async () => {
  using clock = new FakeClock();
  const { echo, ask } = create();
  const first = [1, 2, 3, 4].map((value) => ask(value));
  await settled();
  await echo.end();
  await echo.end();
  assertEquals(await Promise.all(first), [1, 2, 3, 4]);
  const second = [5, 6].map((value) => ask(value)); // three are expected
  await clock.advance(4);
  assertEquals(echo.sizes, [1, 3]);
  second.push(ask(7));
  await settled();
  assertEquals(echo.sizes, [1, 3, 3]);
  await echo.end();
  await Promise.all(second);
  const third = ask(8);
  await clock.advance(4);
  assertEquals(echo.sizes.length, 3);
  await clock.advance(1);
  assertEquals(echo.sizes, [1, 3, 3, 1]);
  await echo.end();
  assertEquals([await third, clock.armed], [8, 0]);
  const fourth = ask(9);
  await settled();
  assertEquals(echo.sizes.length, 5);
  await echo.end();
  await fourth;
});

Deno.test("batching() runs no more than maxSize at once, and preferred sizes at once", async () => {
  using _clock = new FakeClock();
  const { echo, ask } = create({ maxSize: 4, maxDelayMs: 5, preferred: [2] });
  const answers = Array.from({ length: 9 }, (_, i) => ask(i + 1));
  await settled();
  assertEquals(echo.sizes, [1, 4, 4]);
  for (let i = 0; i < 3; i++) await echo.end();
  await Promise.all(answers);
  const two = [ask(1), ask(2)];
  await settled();
  assertEquals(echo.sizes, [1, 4, 4, 2]);
  await echo.end();
  await Promise.all(two);
});

Deno.test("batching() keeps calls of other shapes and other params apart", async () => {
  using _clock = new FakeClock();
  const { echo, ask } = create();
  const answers = [
    ask(1),
    ask(2),
    ask(3, { params: { top: 1 } }),
    ask(4, { params: { top: 1 } }),
    ask(5, { input: { "0": { dtype: "float32", shape: [1, 1], data: Float32Array.of(5) } } }),
    ask(6), // one dim of one or of two: the first does not count
    ask(7, { input: floats(7, 8) }),
  ];
  await settled();
  for (let i = 0; i < 4; i++) await echo.end();
  assertEquals(await Promise.all(answers), [1, 2, 3, 4, 5, 6, 7]);
  assertEquals(echo.sizes, [1, 3, 2, 1]);
});

Deno.test("batching() lets a call that waits leave, and tells the function of one that leaves its batch", async () => {
  using clock = new FakeClock();
  const { echo, ask } = create();
  const controllers = Array.from({ length: 4 }, () => new AbortController());
  const answers = controllers.map(({ signal }, i) => ask(i + 1, { signal }));
  await settled();
  controllers[1]!.abort();
  await assertFails("cancelled", "", () => answers[1]);
  await echo.end();
  assertEquals((echo.calls[1] as BatchCall).items.map(({ id }) => id), ["r3", "r4"]);
  controllers[2]!.abort();
  await assertFails("cancelled", "", () => answers[2]);
  const { items, signal } = echo.calls[1] as BatchCall;
  assertEquals([items[0]!.signal.aborted, items[1]!.signal.aborted, signal.aborted], [true, false, false]);
  await echo.end();
  assertEquals([await answers[0], await answers[3], clock.armed], [1, 4, 0]);
});

Deno.test("batching() aborts a batch that everybody has left", async () => {
  using clock = new FakeClock();
  const { echo, ask } = create();
  const controller = new AbortController();
  const { signal } = controller;
  const answers = [ask(1), ask(2, { signal }), ask(3, { signal })];
  await settled();
  await echo.end();
  controller.abort();
  for (const answer of answers.slice(1)) await assertFails("cancelled", "", () => answer);
  assertEquals(echo.calls[1]!.signal.aborted, true);
  await echo.end();
  assertEquals([await answers[0], clock.armed], [1, 0]);
});

Deno.test("batching() does not let a call wait whose deadline is nearer than the delay", async () => {
  using clock = new FakeClock();
  const { echo, ask } = create();
  const answers = [ask(1), ask(2), ask(3, { deadline: Date.now() + 5 })];
  await settled();
  assertEquals(echo.sizes, [1, 2]);
  assertEquals((echo.calls[1] as BatchCall).deadline, undefined);
  await echo.end();
  await echo.end();
  await Promise.all(answers);
  assertEquals(clock.armed, 0);
});

Deno.test("batching() waits on where no instance has room, so that the batch grows", async () => {
  using clock = new FakeClock();
  const { echo, ask } = create({ maxSize: 8, maxDelayMs: 5 });
  const answers = [ask(1), ask(2)];
  await settled();
  echo.hasRoom = false;
  await clock.advance(100);
  assertEquals(echo.sizes, [1]);
  answers.push(ask(3), ask(4));
  await echo.end();
  assertEquals(echo.sizes, [1, 3]);
  await echo.end();
  assertEquals(await Promise.all(answers), [1, 2, 3, 4]);
  echo.hasRoom = true;
  const more = [ask(5), ask(6)];
  await clock.advance(5);
  assertEquals(echo.sizes, [1, 3, 2]);
  await echo.end();
  await Promise.all(more);
});

Deno.test("batching() keeps several instances busy", async () => {
  using _clock = new FakeClock();
  const { echo, ask } = create();
  echo.instances = 2;
  const answers = [1, 2, 3, 4].map((value) => ask(value));
  await settled();
  assertEquals(echo.sizes, [1, 1]);
  await echo.end();
  assertEquals(echo.sizes, [1, 1, 2]);
  await echo.end();
  await echo.end();
  assertEquals(await Promise.all(answers), [1, 2, 3, 4]);
});

Deno.test("batching() fails a bad call alone, a call without an answer, and all where the batch fails", async () => {
  using clock = new FakeClock();
  const { echo, ask } = create();
  const answers = [ask(1), ask(-1), ask(3), ask(-2)].map((answer) => answer.then(String, (error) => error.code));
  await settled();
  await echo.end();
  await echo.end();
  assertEquals(await Promise.all(answers), ["1", "invalid_argument", "3", "internal"]);
  const lost = [5, 6, 7].map((value) => ask(value).then(String, (error) => error.code));
  await clock.advance(5);
  await echo.end(new ModelError("unavailable", "lost"));
  assertEquals(await Promise.all(lost), ["unavailable", "unavailable", "unavailable"]);
  assert(clock.armed === 0);
});
