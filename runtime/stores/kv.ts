// Sessions in a file: Deno KV. Several processes of one machine may have the file open.
import { ModelError } from "../core/error.ts";
import { NEVER, pause } from "../core/signal.ts";
import type { Lease, SessionRecord, SessionStore } from "../middleware/session_store.ts";
import { LEASE_MS, LeaseLock, leaseLost, type LeaseTable } from "./lease_lock.ts";
import { acquire, FREE, isFree, isHeldBy, type LeaseState, release, renew } from "./lease_state.ts";
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
const LAST_BUSY_PAUSE_MS = 50;
/** How often a session may be replaced while it is read. */
const MAX_READS = 100;
/** After that nobody needs what is left of a lease. */
const LEASE_KEPT_MS = 60_000;

const headKey = (key: string) => ["tensorlet", "session", key];
const piecesKey = (key: string) => ["tensorlet", "session_bytes", key];
const leaseKey = (key: string) => ["tensorlet", "session_lease", key];

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
      acquire: async (key, token, leaseMs, waitMs) =>
        isHeldBy(
          (await this.#change(key, (state, now) => acquire(state, token, now, leaseMs, waitMs)))!,
          token,
          Date.now(),
        ),
      renew: async (key, token, leaseMs) =>
        await this.#change(key, (state, now) => renew(state, token, now, leaseMs)) !== undefined,
      release: async (key, token) => void await this.#change(key, (state) => release(state, token)),
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
      return { ...decodeSession(join(pieces.map(({ value }) => value))), servedBy: head.value.servedBy };
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
        const [lease, head] = await kv.getMany<[LeaseState, Head]>([leaseKey(key), headKey(key)]);
        if (!isHeldBy(lease.value ?? FREE, token, Date.now())) throw leaseLost();
        const operation = kv.atomic().check(lease);
        change(operation, head.value?.pieces ?? 0);
        // Else the lease has been renewed meanwhile, or somebody came to wait for it.
        if ((await operation.commit()).ok) return;
      }
    });
  }

  // Changes who has and waits for a lease; undefined where `change` gives nothing.
  #change<T extends LeaseState | undefined>(key: string, change: (state: LeaseState, now: number) => T): Promise<T> {
    return this.#use(async (kv) => {
      for (;;) {
        const entry = await kv.get<LeaseState>(leaseKey(key));
        const before = entry.value ?? FREE;
        const after = change(before, Date.now());
        if (after === undefined || after === before) return after;
        const operation = kv.atomic().check(entry);
        if (isFree(after)) operation.delete(entry.key);
        else operation.set(entry.key, after, { expireIn: LEASE_KEPT_MS });
        if ((await operation.commit()).ok) return after;
      }
    });
  }

  async #use<T>(action: (kv: Deno.Kv) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new Error("The session store is closed");
    const kv = await (this.#opened ??= this.#open());
    const end = Date.now() + BUSY_MS;
    for (let pauseMs = 1;; pauseMs = Math.min(2 * pauseMs, LAST_BUSY_PAUSE_MS)) {
      try {
        return await action(kv);
      } catch (error) {
        // SQLite's word for another process that writes just now: it does not wait by itself.
        if (!isBusy(error) || Date.now() >= end) throw error;
        await pause(pauseMs * (0.5 + Math.random()), NEVER);
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

function join(pieces: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(pieces.reduce((sum, { byteLength }) => sum + byteLength, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.byteLength;
  }
  return bytes;
}
