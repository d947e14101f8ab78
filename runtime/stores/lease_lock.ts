// The lock of the stores that servers share: a lease, renewed while its turn runs, so that a server that dies holds
// nobody up for long.
import { ModelError } from "../core/error.ts";
import { KeyedLock } from "../core/keyed_lock.ts";
import { pause, throwIfAborted } from "../core/signal.ts";
import type { Lease } from "../middleware/session_store.ts";

/** What a store does for its lock; each as one step that nothing comes between. */
export interface LeaseTable {
  /**
   * Gives the lease to `token` for `leaseMs` where it is free and nobody waits before it: true. Else puts it in the line,
   * which it leaves when it has not asked again for `waitMs`: false.
   */
  acquire(key: string, token: string, leaseMs: number, waitMs: number): Promise<boolean>;
  /** Makes the lease last `leaseMs` from now on; false where it is not the token's any more. */
  renew(key: string, token: string, leaseMs: number): Promise<boolean>;
  /** Gives back the lease, or the place in the line. */
  release(key: string, token: string): Promise<void>;
}

/** How long a lease lasts that is not renewed. */
export const LEASE_MS = 10_000;

/** Who waits asks after the first, then twice it, ..., then every last one of these times. */
const FIRST_PAUSE_MS = 5;
const LAST_PAUSE_MS = 100;
/** Who has not asked for that long has died. */
const WAIT_MS = 2_000;

/** The error of a turn whose session has been given to another one. */
export function leaseLost(): ModelError {
  return new ModelError(
    "aborted",
    "The turn was given up: this server did not renew its lease of the session in time, and another may have gone on",
  );
}

/** Gives leases by key. Callers of one process come in turn before they ask the store, so each has one in its line. */
export class LeaseLock {
  readonly #table: LeaseTable;
  readonly #leaseMs: number;
  readonly #local = new KeyedLock();
  readonly #pending = new Set<Promise<void>>();

  constructor(table: LeaseTable, leaseMs: number = LEASE_MS) {
    this.#table = table;
    this.#leaseMs = leaseMs;
  }

  /** Waits for the lease of a key. Rejects with the signal's reason when it aborts. */
  async lock(key: string, signal: AbortSignal): Promise<Lease> {
    const leave = await this.#local.lock(key, signal);
    const token = crypto.randomUUID();
    try {
      const since = await this.#acquire(key, token, signal);
      const giveBack = () => this.#giveBack(key, token, leave);
      return new HeldLease(this.#leaseMs, since, token, () => this.#table.renew(key, token, this.#leaseMs), giveBack);
    } catch (error) {
      leave(); // the next one learns by itself whether the store is there
      this.#giveBack(key, token, () => {});
      throw error;
    }
  }

  /** Resolves when everything that was released is given back. */
  async close(): Promise<void> {
    await Promise.all(this.#pending);
  }

  async #acquire(key: string, token: string, signal: AbortSignal): Promise<number> {
    for (let pauseMs = FIRST_PAUSE_MS;; pauseMs = Math.min(2 * pauseMs, LAST_PAUSE_MS)) {
      throwIfAborted(signal);
      const asked = Date.now();
      if (await this.#table.acquire(key, token, this.#leaseMs, WAIT_MS)) return asked;
      await pause(pauseMs, signal);
    }
  }

  // Where the store cannot be reached the lease, and the place in the line, run out.
  #giveBack(key: string, token: string, leave: () => void): void {
    const done = this.#table.release(key, token).catch(() => {}).finally(() => {
      leave();
      this.#pending.delete(done);
    });
    this.#pending.add(done);
  }
}

class HeldLease implements Lease {
  readonly token: string;
  readonly #leaseMs: number;
  readonly #lost = new AbortController();
  readonly #askStore: () => Promise<boolean>;
  readonly #giveBack: () => void;
  /** When the store may give the lease to somebody else. */
  #until: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isReleased = false;

  constructor(leaseMs: number, since: number, token: string, askStore: () => Promise<boolean>, giveBack: () => void) {
    this.token = token;
    this.#leaseMs = leaseMs;
    this.#until = since + leaseMs;
    this.#askStore = askStore;
    this.#giveBack = giveBack;
    this.#arm(leaseMs / 3);
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    clearTimeout(this.#timer);
    this.#giveBack();
  }

  #arm(ms: number): void {
    if (this.#isReleased) return;
    const left = Math.max(0, this.#until - Date.now());
    this.#timer = setTimeout(() => this.#renew(), Math.min(left, ms));
  }

  async #renew(): Promise<void> {
    const asked = Date.now();
    try {
      if (!await this.#askStore()) return this.#lose();
      this.#until = asked + this.#leaseMs;
      this.#arm(this.#leaseMs / 3);
    } catch {
      if (Date.now() >= this.#until) this.#lose();
      else this.#arm(this.#leaseMs / 10);
    }
  }

  #lose(): void {
    if (!this.#isReleased) this.#lost.abort(leaseLost());
  }
}
