// Where sessions are kept between two turns.
import type { SessionSnapshot } from "../core/call.ts";
import { abortable } from "../core/signal.ts";

/** Keeps sessions by key. */
export interface SessionStore {
  /** Waits, first come first served, until no other turn of this session runs; returns what ends the wait of the next. */
  lock(key: string, signal: AbortSignal): Promise<() => void>;
  /** The session, or undefined. */
  load(key: string): Promise<SessionSnapshot | undefined>;
  /** Replaces the session. */
  save(key: string, snapshot: SessionSnapshot): Promise<void>;
  /** Forgets the session. */
  delete(key: string): Promise<void>;
}

/** Keeps sessions in this process's memory: they end with it. */
export class MemorySessionStore implements SessionStore {
  readonly #sessions = new Map<string, SessionSnapshot>();
  readonly #tails = new Map<string, Promise<void>>();

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

  load(key: string): Promise<SessionSnapshot | undefined> {
    return Promise.resolve(this.#sessions.get(key));
  }

  save(key: string, snapshot: SessionSnapshot): Promise<void> {
    this.#sessions.set(key, snapshot);
    return Promise.resolve();
  }

  delete(key: string): Promise<void> {
    this.#sessions.delete(key);
    return Promise.resolve();
  }
}
