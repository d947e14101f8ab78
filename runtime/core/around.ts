// Something around an iterable: what `try { yield* values } finally { leave() }` in an async generator does, at a fraction
// of its price, which every value pays in every layer: `yield*` awaits each result three times.

/** What is around the values. */
export interface Surroundings<T> {
  /** Before the first value is asked for. Where it throws nothing else runs. */
  readonly enter?: () => void | Promise<void>;
  /** The values; asked for once. */
  readonly values: () => AsyncIterable<T, void, undefined>;
  /** Sees each value on its way. */
  readonly onValue?: (value: T) => void;
  /** What the reader gets instead of a failure. */
  readonly toFailure?: (reason: unknown) => unknown;
  /** Runs once: after the last value, a failure, or where the reader leaves. Gets the failure. */
  readonly leave: (ending: Ending) => void;
}

/** How the values came to their end: all were read, one failed, or their reader left. */
export type Ending =
  | { readonly how: "completed" }
  | { readonly how: "failed"; readonly reason: unknown }
  | { readonly how: "left" };

/** The values, with their surroundings. Read by one reader, one value at a time. */
export function around<T>(surroundings: Surroundings<T>): AsyncIterableIterator<T, void, undefined> {
  return new Around(surroundings);
}

const DONE: IteratorResult<never, void> = { done: true, value: undefined };
const COMPLETED: Ending = { how: "completed" };
const LEFT: Ending = { how: "left" };

class Around<T> implements AsyncIterableIterator<T, void, undefined> {
  readonly #surroundings: Surroundings<T>;
  #values: AsyncIterator<T, void, undefined> | undefined;
  #isOver = false;

  constructor(surroundings: Surroundings<T>) {
    this.#surroundings = surroundings;
  }

  next(): Promise<IteratorResult<T, void>> {
    if (this.#isOver) return Promise.resolve(DONE);
    if (this.#values) return this.#values.next().then(this.#pass, this.#fail);
    return this.#start();
  }

  async return(): Promise<IteratorResult<T, void>> {
    if (this.#isOver || !this.#values) {
      this.#isOver = true;
      return DONE;
    }
    try {
      await this.#values.return?.();
    } catch (reason) {
      this.#fail(reason);
    }
    this.#end(LEFT);
    return DONE;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async #start(): Promise<IteratorResult<T, void>> {
    const { enter, values } = this.#surroundings;
    try {
      const entered = enter?.();
      if (entered) await entered;
    } catch (reason) {
      this.#isOver = true;
      throw reason;
    }
    if (this.#isOver) { // the reader has left meanwhile
      this.#surroundings.leave(LEFT);
      return DONE;
    }
    try {
      this.#values = values()[Symbol.asyncIterator]();
    } catch (reason) {
      this.#fail(reason);
    }
    return await this.next();
  }

  readonly #pass = (result: IteratorResult<T, void>): IteratorResult<T, void> => {
    if (result.done) this.#end(COMPLETED);
    else this.#surroundings.onValue?.(result.value);
    return result;
  };

  readonly #fail = (reason: unknown): never => {
    const { toFailure } = this.#surroundings;
    const failure = toFailure ? toFailure(reason) : reason;
    this.#end({ how: "failed", reason: failure });
    throw failure;
  };

  #end(ending: Ending): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#surroundings.leave(ending);
  }
}
