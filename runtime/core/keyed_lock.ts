import { abortable } from "./signal.ts";

/** Lets one in at a time for each key, first come first served. */
export class KeyedLock {
  readonly #tails = new Map<string, Promise<void>>();

  /** Waits for its turn; returns what lets the next one in. Rejects with the signal's reason when it aborts. */
  async lock(key: string, signal: AbortSignal): Promise<() => void> {
    const before = this.#tails.get(key) ?? Promise.resolve();
    const { promise: done, resolve } = Promise.withResolvers<void>();
    const tail = before.then(() => done);
    this.#tails.set(key, tail);
    const unlock = () => {
      resolve();
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    };
    try {
      await abortable(before, signal);
      return unlock;
    } catch (error) {
      // Its place in the line stays until those before it are done.
      before.then(unlock);
      throw error;
    }
  }
}
