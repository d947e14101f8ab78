import { assert, assertEquals, assertRejects, assertStrictEquals } from "tensorlet/assert";
import { assertFails, collect, NEVER } from "../../test/harness/calls.ts";
import { settled } from "../../test/harness/clock.ts";
import { ModelError } from "./error.ts";
import { ChunkSource } from "./stream.ts";

function sourceOf(signal: AbortSignal = NEVER): ChunkSource<string> {
  return new ChunkSource<string>(signal);
}

Deno.test("ChunkSource() gives what a generator yields", async () => {
  const source = sourceOf();
  source.attach(async function* () {
    yield "a";
    yield "b";
  }());
  assertEquals(await collect(source), ["a", "b"]);
  assertEquals(await source.next(), { done: true, value: undefined });
});

Deno.test("ChunkSource() gives what a handler emits, until its promise ends", async () => {
  const source = sourceOf();
  const handler = async () => {
    await source.emit("a");
    await source.emit("b");
  };
  source.attach(handler());
  assertEquals(await collect(source), ["a", "b"]);
});

Deno.test("ChunkSource() gives nothing when the handler returns nothing", async () => {
  const source = sourceOf();
  source.attach(undefined);
  assertEquals(await collect(source), []);
});

Deno.test("ChunkSource() keeps yielded and emitted chunks in order", async () => {
  const source = sourceOf();
  source.attach(async function* () {
    yield "a";
    await source.emit("b");
    source.emit("c");
    source.emit("d");
    yield "e";
    source.emit("f");
  }());
  assertEquals(await collect(source), ["a", "b", "c", "d", "e", "f"]);
});

Deno.test("ChunkSource() runs a generator only while a reader waits", async () => {
  const source = sourceOf();
  let made = 0;
  source.attach(async function* () {
    for (;;) yield `${++made}`;
  }());
  await settled();
  assertEquals(made, 0);
  await source.next();
  await settled();
  assertEquals(made, 1);
  await source.return();
});

Deno.test("ChunkSource() runs a generator that also emits only while a reader waits", async () => {
  const source = sourceOf();
  let made = 0;
  source.attach(async function* () {
    await source.emit("a");
    await settled();
    for (;;) yield `${++made}`;
  }());
  assertEquals([(await source.next()).value, (await source.next()).value], ["a", "1"]);
  await settled();
  assertEquals(made, 1);
  await source.return();
});

Deno.test("ChunkSource() resolves emit when the reader took the chunk", async () => {
  const source = sourceOf();
  let taken = 0;
  const handler = async () => {
    for (const chunk of ["a", "b", "c"]) await source.emit(chunk).then(() => taken++);
  };
  source.attach(handler());
  await settled();
  assertEquals(taken, 0);
  assertEquals(await source.next(), { done: false, value: "a" });
  await settled();
  assertEquals(taken, 1);
  assertEquals(await collect(source), ["b", "c"]);
  assertEquals(taken, 3);
});

Deno.test("ChunkSource() gives waiting chunks before the failure of the handler", async () => {
  const source = sourceOf();
  const handler = () => {
    source.emit("a");
    return Promise.reject(new RangeError("broke"));
  };
  source.attach(handler());
  await settled();
  assertEquals((await source.next()).value, "a");
  await assertRejects(() => source.next(), RangeError, "broke");
});

Deno.test("ChunkSource() rejects emit when the reader left", async () => {
  const source = sourceOf();
  const handler = async () => {
    await source.emit("a");
    await source.emit("b");
  };
  const handled = handler();
  source.attach(handled);
  await source.next();
  await source.return();
  await assertFails("cancelled", "The reader of this stream left", () => handled);
  await assertFails("cancelled", "The reader of this stream left", () => source.emit("c"));
});

Deno.test("ChunkSource() rejects emit after the handler has ended", async () => {
  const source = sourceOf();
  source.attach(Promise.resolve());
  assertEquals(await collect(source), []);
  await assertFails("cancelled", "Cannot emit: the call has ended", () => source.emit("a"));
});

Deno.test("ChunkSource() refuses to hold more than 1024 chunks that nobody awaits", async () => {
  const source = sourceOf();
  const taken = Array.from({ length: 1024 }, (_, i) => source.emit(`${i}`));
  await assertRejects(() => source.emit("more"), RangeError, "1024 chunks wait for the reader; await each emit()");
  for (let i = 0; i < 1024; i++) await source.next();
  await Promise.all(taken);
});

Deno.test("ChunkSource() runs a generator's finally when the reader leaves", async () => {
  const source = sourceOf();
  let cleaned = false;
  source.attach(async function* () {
    try {
      for (;;) yield "a";
    } finally {
      cleaned = true;
    }
  }());
  for await (const _ of source) break;
  await settled();
  assert(cleaned);
});

Deno.test("ChunkSource() rejects a waiting reader and emits at once when the signal aborts", async () => {
  const controller = new AbortController();
  const reason = new ModelError("unavailable", "gone");
  const reading = sourceOf(controller.signal);
  reading.attach(new Promise<void>(() => {})); // a handler that ignores everything
  const read = reading.next().catch((error) => error);
  const emitting = sourceOf(controller.signal);
  const emitted = emitting.emit("a").catch((error) => error);
  controller.abort(reason);
  assertStrictEquals(await read, reason);
  assertStrictEquals(await emitted, reason);
  await assertFails("unavailable", "gone", () => emitting.next());
  await assertFails("unavailable", "gone", () => emitting.emit("b"));
});

Deno.test("ChunkSource() runs a generator's finally when the signal aborts", async () => {
  const controller = new AbortController();
  const source = sourceOf(controller.signal);
  let cleaned = false;
  source.attach(async function* () {
    try {
      yield "a";
    } finally {
      cleaned = true;
    }
  }());
  await source.next();
  controller.abort();
  await settled();
  assert(cleaned);
  await assertFails("cancelled", "The client cancelled the call", () => source.next());
});

Deno.test("ChunkSource() is closed from the start when the signal already is aborted", async () => {
  const source = sourceOf(AbortSignal.abort());
  let ran = false;
  source.attach(async function* () {
    ran = true;
    yield "a";
  }());
  await assertFails("cancelled", "", () => source.next());
  assert(!ran);
  let returned = 0;
  const iterator: AsyncIterableIterator<string, void> = {
    next: () => Promise.reject(new Error("not to be read")),
    return: () => (returned++, Promise.resolve({ done: true, value: undefined })),
    [Symbol.asyncIterator]: () => iterator,
  };
  sourceOf(AbortSignal.abort()).attach(iterator);
  assertEquals(returned, 1);
});

Deno.test("ChunkSource() says why a handler stopped: the abort, not what it threw because of it", async () => {
  const controller = new AbortController();
  const source = sourceOf(controller.signal);
  source.attach(async function* () {
    yield "a";
    controller.abort(new ModelError("deadline_exceeded", "late"));
    throw new Error("socket closed");
  }());
  await source.next();
  await assertFails("deadline_exceeded", "late", () => source.next());
});

Deno.test("ChunkSource() throws away what waits when the signal aborts after the handler has ended", async () => {
  const controller = new AbortController();
  const source = sourceOf(controller.signal);
  const emitted = source.emit("a").catch((error) => error.code);
  source.attach(Promise.resolve());
  await settled();
  controller.abort();
  await assertFails("cancelled", "", () => source.next());
  assertEquals(await emitted, "cancelled");
});

Deno.test("ChunkSource() rejects emits that wait when the reader leaves after the handler has ended", async () => {
  for (const handler of [() => Promise.resolve(), () => Promise.reject(new Error("broke"))]) {
    const source = sourceOf();
    const emitted = source.emit("a").catch((error) => error.code);
    source.attach(handler());
    await settled();
    await source.return();
    assertEquals(await emitted, "cancelled");
    assertEquals((await source.next().catch(() => ({ value: undefined }))).value, undefined);
  }
});

Deno.test("ChunkSource() does not listen to the signal any longer than it needs", async () => {
  const { signal } = new AbortController();
  let listeners = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => (listeners++, add(...args));
  signal.removeEventListener = (...args: Parameters<typeof remove>) => (listeners--, remove(...args));
  const source = sourceOf(signal);
  assertEquals(listeners, 1);
  source.attach(async function* () {
    yield "a";
  }());
  await collect(source);
  assertEquals(listeners, 0);
});
