// Sessions in a file: Deno KV. Several processes of one machine may have the file open.
import { concatBytes } from "../core/bytes.ts";
import { ModelError } from "../core/error.ts";
import { NEVER, pause } from "../core/signal.ts";
import type { Lease, SessionRecord, SessionStore } from "../middleware/session_store.ts";
import { LEASE_MS, LeaseLock, leaseLost, type LeaseTable } from "./lease_lock.ts";
import { type Holder, isHeldBy, isNext, type Waiter } from "./lease_state.ts";
import { decodeSession, encodeSession } from "./record.ts";

/** The head of a session; its bytes are in pieces beside it, all written in one step. */
interface Head {
  readonly servedBy: string;
  /** Epoch milliseconds; Deno KV deletes what has expired some time later. */
  readonly expiresAt: number;
  readonly pieces: number;
}

/** Deno KV takes values of 64 KiB at most, ... */
const PIECE_BYTES = 60_000;
/** ... and writes of 800 KiB; the keys and the head need some of it. */
const MAX_SESSION_BYTES = 12 * PIECE_BYTES;
/** How long is waited for another process that writes to the file. */
const BUSY_MS = 5_000;
/** No longer: whoever waits must not lose against those who write all the time. */
const BUSY_PAUSE_MS = 4;
/** How often a session may be replaced while it is read. */
const MAX_READS = 100;

const headKey = (key: string) => ["tensorlet", "session", key];
const piecesKey = (key: string) => ["tensorlet", "session_bytes", key];
const leaseKey = (key: string) => ["tensorlet", "session_lease", key];
const lineKey = (key: string) => ["tensorlet", "session_line", key];

/** The options of {@linkcode KvSessionStore}. */
export interface KvSessionStoreOptions {
  /** How long a lease lasts that is not renewed. @default {10_000} */
  readonly leaseMs?: number;
}

/** Keeps sessions in a Deno KV file, which is opened at the first use, and again at the next one where that fails. */
export class KvSessionStore implements SessionStore {
  readonly durable = true;
  readonly #path: string;
  readonly #lock: LeaseLock;
  #opened: Promise<Deno.Kv> | undefined;
  #isClosed = false;

  constructor(path: string, options: KvSessionStoreOptions = {}) {
    this.#path = path;
    const table: LeaseTable = {
      acquire: (...args) => this.#acquire(...args),
      renew: (...args) => this.#renew(...args),
      release: (...args) => this.#release(...args),
    };
    this.#lock = new LeaseLock(table, options.leaseMs ?? LEASE_MS);
  }

  lock(key: string, signal: AbortSignal): Promise<Lease> {
    return this.#lock.lock(key, signal);
  }

  load(key: string): Promise<SessionRecord | undefined> {
    return this.#use(async (kv) => {
      const [head, pieces] = await readSession(kv, key);
      if (!head.value || head.value.expiresAt <= Date.now()) return undefined;
      return { ...decodeSession(concatBytes(pieces.map(({ value }) => value))), servedBy: head.value.servedBy };
    });
  }

  async save(key: string, { servedBy, ...session }: SessionRecord, ttlMs: number, lease: Lease): Promise<void> {
    const bytes = encodeSession(session);
    if (bytes.byteLength > MAX_SESSION_BYTES) {
      throw new ModelError(
        "resource_exhausted",
        `Cannot save the session: it takes ${bytes.byteLength} bytes, and Deno KV takes ${MAX_SESSION_BYTES} at most`,
      );
    }
    await this.#write(key, lease, (operation, old) => {
      const pieces = cut(bytes);
      const head: Head = { servedBy, expiresAt: Date.now() + ttlMs, pieces: pieces.length };
      operation.set(headKey(key), head, { expireIn: ttlMs });
      pieces.forEach((piece, i) => operation.set([...piecesKey(key), i], piece, { expireIn: ttlMs }));
      for (let i = pieces.length; i < old; i++) operation.delete([...piecesKey(key), i]);
    });
  }

  touch(key: string, servedBy: string, ttlMs: number): Promise<boolean> {
    return this.#use(async (kv) => {
      for (;;) {
        const [head, pieces] = await readSession(kv, key);
        if (!head.value || head.value.expiresAt <= Date.now()) return false;
        const touched: Head = { ...head.value, servedBy, expiresAt: Date.now() + ttlMs };
        const operation = kv.atomic().check(head).set(head.key, touched, { expireIn: ttlMs });
        // They have a time of their own to expire.
        for (const { key, value } of pieces) operation.set(key, value, { expireIn: ttlMs });
        if ((await operation.commit()).ok) return true;
      }
    });
  }

  delete(key: string, lease: Lease): Promise<void> {
    return this.#write(key, lease, (operation, old) => {
      operation.delete(headKey(key));
      for (let i = 0; i < old; i++) operation.delete([...piecesKey(key), i]);
    });
  }

  count(): Promise<number> {
    return this.#use(async (kv) => {
      let count = 0;
      for await (const { value } of kv.list<Head>({ prefix: headKey("").slice(0, -1) })) {
        if (value.expiresAt > Date.now()) count++;
      }
      return count;
    });
  }

  async close(): Promise<void> {
    await this.#lock.close();
    this.#isClosed = true;
    const opened = this.#opened;
    this.#opened = undefined;
    (await opened?.catch(() => undefined))?.close();
  }

  // Changes a session, and nothing where the lease is lost.
  #write(key: string, { token }: Lease, change: (operation: Deno.AtomicOperation, oldPieces: number) => void) {
    return this.#use(async (kv) => {
      for (;;) {
        const [lease, head] = await kv.getMany<[Holder, Head]>([leaseKey(key), headKey(key)]);
        if (!isHeldBy(lease.value, token, Date.now())) throw leaseLost();
        const operation = kv.atomic().check(lease);
        change(operation, head.value?.pieces ?? 0);
        if ((await operation.commit()).ok) return; // else the lease has been renewed meanwhile
      }
    });
  }

  #acquire(key: string, token: string, leaseMs: number, waitMs: number): Promise<boolean> {
    return this.#use(async (kv) => {
      const lease = await kv.get<Holder>(leaseKey(key));
      const line = (await Array.fromAsync(kv.list<Waiter>({ prefix: lineKey(key) }))).map(({ value }) => value);
      const now = Date.now();
      if (isHeldBy(lease.value, token, now)) return true;
      const place = [...lineKey(key), token];
      if (isNext(lease.value, line, token, now)) {
        const operation = kv.atomic().check(lease).delete(place);
        operation.set(lease.key, { token, until: now + leaseMs }, { expireIn: 2 * leaseMs });
        if ((await operation.commit()).ok) return true;
      }
      // In no race with anybody, so that whoever is slow gets a place. Not at every time of asking: it is a write.
      const own = line.find((each) => each.token === token);
      if (!own || own.until < now + waitMs / 2) {
        await kv.set(place, { token, since: own?.since ?? now, until: now + waitMs }, { expireIn: 2 * waitMs });
      }
      return false;
    });
  }

  #renew(key: string, token: string, leaseMs: number): Promise<boolean> {
    return this.#use(async (kv) => {
      const lease = await kv.get<Holder>(leaseKey(key));
      const now = Date.now();
      if (!isHeldBy(lease.value, token, now)) return false;
      const renewed: Holder = { token, until: now + leaseMs };
      // Nobody but its holder changes a lease that has not run out.
      return (await kv.atomic().check(lease).set(lease.key, renewed, { expireIn: 2 * leaseMs }).commit()).ok;
    });
  }

  #release(key: string, token: string): Promise<void> {
    return this.#use(async (kv) => {
      for (;;) {
        const lease = await kv.get<Holder>(leaseKey(key));
        if (lease.value?.token !== token) return await kv.delete([...lineKey(key), token]);
        if ((await kv.atomic().check(lease).delete(lease.key).commit()).ok) return; // else it was just renewed
      }
    });
  }

  async #use<T>(action: (kv: Deno.Kv) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new Error("The session store is closed");
    const kv = await (this.#opened ??= this.#open());
    const end = Date.now() + BUSY_MS;
    for (;;) {
      try {
        return await action(kv);
      } catch (error) {
        // SQLite's word for another process that writes just now: it does not wait by itself.
        if (!isBusy(error) || Date.now() >= end) throw error;
        await pause(BUSY_PAUSE_MS * Math.random(), NEVER);
      }
    }
  }

  #open(): Promise<Deno.Kv> {
    return Deno.openKv(this.#path).catch((error) => {
      this.#opened = undefined;
      throw error;
    });
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && error.message.includes("database is locked");
}

// A head and its pieces of the same write: entries have their write's versionstamp.
async function readSession(
  kv: Deno.Kv,
  key: string,
): Promise<[head: Deno.KvEntryMaybe<Head>, pieces: Deno.KvEntry<Uint8Array>[]]> {
  for (let attempt = 0; attempt < MAX_READS; attempt++) {
    const head = await kv.get<Head>(headKey(key));
    if (!head.value) return [head, []];
    const pieces = await Array.fromAsync(kv.list<Uint8Array>({ prefix: piecesKey(key) }));
    const isWhole = pieces.length === head.value.pieces &&
      pieces.every(({ versionstamp }) => versionstamp === head.versionstamp);
    if (isWhole) return [head, pieces];
    // Deno KV deletes what has expired piece by piece.
    if (head.value.expiresAt <= Date.now()) return [{ ...head, value: null, versionstamp: null }, []];
  }
  throw new ModelError("data_loss", "The session cannot be read: a part of it is missing");
}

function cut(bytes: Uint8Array): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.byteLength; at += PIECE_BYTES) pieces.push(bytes.subarray(at, at + PIECE_BYTES));
  return pieces;
}
