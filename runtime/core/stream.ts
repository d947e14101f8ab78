import { ModelError } from "./error.ts";
import { abortReason } from "./signal.ts";

// A handler that never awaits `emit` would otherwise fill the memory while its reader is slow.
const MAX_UNAWAITED = 1024;

interface Waiting<C> {
  readonly chunk: C;
  taken(): void;
  refuse(reason: unknown): void;
}

interface Reader<C> {
  resolve(result: IteratorResult<C, void>): void;
  reject(reason: unknown): void;
}

/**
 * The chunks of one handler in order, whether it yields, emits, or both. Pulled: the generator runs only while a
 * reader waits. Once the signal aborts, `next()` rejects with its reason, `emit` too, and the generator's `return()` runs.
 */
export class ChunkSource<C> implements AsyncIterableIterator<C, void, undefined> {
  readonly #signal: AbortSignal;
  readonly #unfollow: () => void;
  readonly #track: (work: PromiseLike<unknown>) => void;
  #generator: AsyncIterator<C, void, undefined> | undefined;
  #stepping = false;
  #queue: Waiting<C>[] = [];
  #reader: Reader<C> | undefined;
  #ended = false;
  #failure: { readonly reason: unknown } | undefined;

  /** `track` is told of what the handler may leave running when the reader has gone. */
  constructor(signal: AbortSignal, track: (work: PromiseLike<unknown>) => void = () => {}) {
    this.#signal = signal;
    this.#track = track;
    const onAbort = () => this.#close(abortReason(signal));
    signal.addEventListener("abort", onAbort, { once: true });
    this.#unfollow = () => signal.removeEventListener("abort", onAbort);
    if (signal.aborted) this.#close(abortReason(signal));
  }

  /** Takes what the handler returned: a generator, or the promise of one that emits. */
  attach(emitted: unknown): void {
    if (isAsyncIterable(emitted)) {
      this.#generator = emitted[Symbol.asyncIterator]() as AsyncIterator<C, void, undefined>;
      if (this.#failure) this.#stop();
      return;
    }
    this.#stepping = true;
    const ending = Promise.resolve(emitted);
    this.#track(ending);
    ending.then(
      (value) => value === undefined ? this.#end() : this.#fail(wrongReturn(value)),
      (error) => this.#fail(error),
    );
  }

  /** What `ctx.emit` does. */
  emit(chunk: C): Promise<void> {
    const taken = this.#emit(chunk);
    taken.catch(() => {}); // a handler that does not await it learns of the abort by its signal
    return taken;
  }

  #emit(chunk: C): Promise<void> {
    if (this.#failure) return Promise.reject(this.#failure.reason);
    if (this.#ended) return Promise.reject(new ModelError("cancelled", "Cannot emit: the call has ended"));
    if (this.#queue.length >= MAX_UNAWAITED) {
      return Promise.reject(
        new RangeError(`Cannot emit: ${MAX_UNAWAITED} chunks wait for the reader; await each emit()`),
      );
    }
    return new Promise((taken, refuse) => this.#deliver({ chunk, taken, refuse }));
  }

  next(): Promise<IteratorResult<C, void>> {
    const waiting = this.#queue.shift();
    if (waiting) {
      waiting.taken();
      return Promise.resolve({ done: false, value: waiting.chunk });
    }
    if (this.#failure) return Promise.reject(this.#failure.reason);
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject };
      this.#step();
    });
  }

  /** The reader leaves early: emits are refused and the generator's `finally` runs. */
  return(): Promise<IteratorResult<C, void>> {
    this.#close(new ModelError("cancelled", "The reader of this stream left"));
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #step(): void {
    if (this.#stepping || !this.#generator) return;
    this.#stepping = true;
    this.#generator.next().then(({ done, value }) => {
      this.#stepping = false;
      if (done) return this.#end();
      this.#deliver({ chunk: value, taken() {}, refuse() {} });
    }).catch((error) => this.#fail(error)); // an iterator of one's own may answer with anything
  }

  #deliver(waiting: Waiting<C>): void {
    if (this.#failure) return waiting.refuse(this.#failure.reason);
    const reader = this.#reader;
    if (!reader) {
      this.#queue.push(waiting);
      return;
    }
    this.#reader = undefined;
    waiting.taken();
    reader.resolve({ done: false, value: waiting.chunk });
  }

  #end(): void {
    if (this.#failure) return;
    this.#ended = true;
    if (this.#queue.length === 0) this.#unfollow();
    this.#reader?.resolve({ done: true, value: undefined });
    this.#reader = undefined;
  }

  #fail(error: unknown): void {
    if (this.#failure) return;
    // A handler that stops because of the abort throws something of its own: the abort is why.
    const reason = this.#signal.aborted ? abortReason(this.#signal) : error;
    this.#failure = { reason };
    if (this.#queue.length === 0) this.#unfollow();
    this.#reader?.reject(reason);
    this.#reader = undefined;
  }

  #close(reason: unknown): void {
    // A handler that has ended may have left chunks behind, whose emits still wait.
    if ((this.#failure || this.#ended) && this.#queue.length === 0) return;
    this.#failure = { reason };
    this.#unfollow();
    const queue = this.#queue;
    this.#queue = [];
    for (const waiting of queue) waiting.refuse(reason);
    this.#reader?.reject(reason);
    this.#reader = undefined;
    this.#stop();
  }

  // Not awaited: a handler stuck in an await would hold up its caller.
  #stop(): void {
    const ending = this.#generator?.return?.();
    if (ending) this.#track(Promise.resolve(ending).then(undefined, () => {}));
  }
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

function wrongReturn(value: unknown): ModelError {
  const got = Array.isArray(value)
    ? "an array"
    : typeof value === "string"
    ? "a string"
    : `a value of type ${typeof value}`;
  return new ModelError(
    "internal",
    `The function's answer cannot be used: got ${got}, wanted an async generator (async *stream), or chunks by ctx.emit`,
  );
}
