// A store that several servers share, in memory: with times to live, leases that can be taken away, and outages.
import { ModelError } from "../../runtime/core/error.ts";
import {
  type Lease,
  MemorySessionStore,
  type SessionRecord,
  type SessionStore,
} from "../../runtime/middleware/session_store.ts";

export class SharedStore implements SessionStore {
  readonly durable = true;
  readonly #memory = new MemorySessionStore();
  /** What was asked of it, in order, but for the locks. */
  readonly asked: string[] = [];
  readonly #expiry = new Map<string, number>();
  readonly #lost = new Map<string, AbortController>();
  /** What it cannot do right now. */
  away: "all" | "save" | "delete" | undefined;

  async lock(key: string, signal: AbortSignal): Promise<Lease> {
    this.#check("lock");
    const { release } = await this.#memory.lock(key, signal);
    try {
      this.#check("lock");
    } catch (error) {
      release();
      throw error;
    }
    const lost = new AbortController();
    this.#lost.set(key, lost);
    return { token: key, lost: lost.signal, release };
  }

  /** Takes the lease of a session away from whoever has it; the next one still waits for its release. */
  loseLease(key: string): void {
    this.#lost.get(key)!.abort(new ModelError("aborted", "The lease is lost"));
  }

  load(key: string): Promise<SessionRecord | undefined> {
    return this.#do("load", key, () => this.#isThere(key) ? this.#memory.load(key) : Promise.resolve(undefined));
  }

  save(key: string, record: SessionRecord, ttlMs: number, lease: Lease): Promise<void> {
    return this.#do("save", key, () => {
      lease.lost.throwIfAborted();
      this.#expiry.set(key, Date.now() + ttlMs);
      return this.#memory.save(key, record);
    });
  }

  touch(key: string, servedBy: string, ttlMs: number): Promise<boolean> {
    return this.#do("touch", key, () => {
      if (!this.#isThere(key)) return Promise.resolve(false);
      this.#expiry.set(key, Date.now() + ttlMs);
      return this.#memory.touch(key, servedBy);
    });
  }

  delete(key: string, lease: Lease): Promise<void> {
    return this.#do("delete", key, () => {
      lease.lost.throwIfAborted();
      return this.#memory.delete(key);
    });
  }

  async #do<T>(what: string, key: string, action: () => Promise<T>): Promise<T> {
    await Promise.resolve();
    this.asked.push(`${what} ${key.split("\0")[1]}`);
    this.#check(what);
    return await action();
  }

  #check(what: string): void {
    if (this.away === "all" || this.away === what) throw new Error("connect ECONNREFUSED 10.0.0.1:6379");
  }

  count(): Promise<number> {
    return this.#do("count", "", () => this.#memory.count());
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #isThere(key: string): boolean {
    return (this.#expiry.get(key) ?? 0) > Date.now();
  }
}
