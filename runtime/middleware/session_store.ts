// Where sessions are kept between two turns, and whose turn it is.
import type { SessionSnapshot } from "../core/call.ts";
import { KeyedLock } from "../core/keyed_lock.ts";
import { NEVER } from "../core/signal.ts";

/** A session as a store keeps it. */
export interface SessionRecord {
  /** What the turns so far have left. */
  readonly snapshot: SessionSnapshot;
  /** The version of the function that serves it. */
  readonly version: string;
  /** The server that served it last, which is the one that ends it: an id of its process. */
  readonly servedBy: string;
}

/** The right to use a session, which one turn has at a time. */
export interface Lease {
  /** What the store knows the lease by. */
  readonly token: string;
  /** Aborts, with a `ModelError`, where the store has given the session to somebody else, or might have. */
  readonly lost: AbortSignal;
  /** Gives the session back. */
  release(): void;
}

/**
 * Keeps sessions by key; a key is any text. Failures other than a `ModelError` mean that the store cannot be reached:
 * the caller is told so, and the log has the cause.
 */
export interface SessionStore {
  /** Whether its sessions outlive this process: then a server's shutdown does not end them. */
  readonly durable: boolean;
  /** Waits for the session, first come first served. Rejects with the signal's reason when it aborts. */
  lock(key: string, signal: AbortSignal): Promise<Lease>;
  /** The session, or undefined. */
  load(key: string): Promise<SessionRecord | undefined>;
  /** Replaces the session and keeps it for `ttlMs`. Fails with `aborted` where the lease is lost, and changes nothing. */
  save(key: string, record: SessionRecord, ttlMs: number, lease: Lease): Promise<void>;
  /** Keeps the session for `ttlMs` from now on, as one that `servedBy` served last. False where there is none. */
  touch(key: string, servedBy: string, ttlMs: number): Promise<boolean>;
  /** Forgets the session. Fails with `aborted` where the lease is lost, and changes nothing. */
  delete(key: string, lease: Lease): Promise<void>;
  /** How many sessions it keeps, those of other servers included. */
  count(): Promise<number>;
  /** Frees what the store holds of this process; whoever made the store calls it, after the server's end. */
  close(): Promise<void>;
}

/**
 * Keeps sessions in this process's memory: they end with it. Its leases are not lost and its sessions do not expire,
 * since the one process that uses them also ends them.
 */
export class MemorySessionStore implements SessionStore {
  readonly durable: boolean = false;
  readonly #sessions = new Map<string, SessionRecord>();
  readonly #turns = new KeyedLock();

  async lock(key: string, signal: AbortSignal): Promise<Lease> {
    return { token: "", lost: NEVER, release: await this.#turns.lock(key, signal) };
  }

  load(key: string): Promise<SessionRecord | undefined> {
    return Promise.resolve(this.#sessions.get(key));
  }

  save(key: string, record: SessionRecord): Promise<void> {
    this.#sessions.set(key, record);
    return Promise.resolve();
  }

  touch(key: string, servedBy: string): Promise<boolean> {
    const record = this.#sessions.get(key);
    if (record) this.#sessions.set(key, { ...record, servedBy });
    return Promise.resolve(record !== undefined);
  }

  delete(key: string): Promise<void> {
    this.#sessions.delete(key);
    return Promise.resolve();
  }

  count(): Promise<number> {
    return Promise.resolve(this.#sessions.size);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
