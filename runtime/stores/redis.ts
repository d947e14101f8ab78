// Sessions in Redis (6 or newer), for several servers.
import { Buffer } from "node:buffer";
import type { createClient } from "@redis/client";
import type { Lease, SessionRecord, SessionStore } from "../middleware/session_store.ts";
import { LEASE_MS, LeaseLock, leaseLost } from "./lease_lock.ts";
import { decodeSession, encodeSession } from "./record.ts";
import { ACQUIRE, COUNT, DELETE, RELEASE, RENEW, SAVE, TOUCH } from "./redis_scripts.ts";

/** A command that takes longer counts as a failure. */
const COMMAND_MS = 2_000;
/** A connection that is silent for that long is given up; it is asked for a sign of life every `PING_MS`. */
const SILENCE_MS = 5_000;
const PING_MS = 1_000;
const FIRST_RECONNECT_MS = 50;
const LAST_RECONNECT_MS = 1_000;

const PREFIX = "tensorlet:";
/** Every session by when it expires. */
const ALL = `${PREFIX}sessions`;
const sessionKey = (key: string) => `${PREFIX}session:${key}`;
const leaseKey = (key: string) => `${PREFIX}session_lease:${key}`;
const leaseKeys = (key: string) => [leaseKey(key), `${PREFIX}session_line:${key}`, `${PREFIX}session_waiting:${key}`];

/** The options of {@linkcode RedisSessionStore}. */
export interface RedisSessionStoreOptions {
  /** How long a lease lasts that is not renewed. @default {10_000} */
  readonly leaseMs?: number;
}

/**
 * Keeps sessions in Redis: each is a hash of its bytes and of who served it last. What has to be one step is a script, so
 * all times are those of Redis. It connects at the first use, and reconnects by itself.
 */
export class RedisSessionStore implements SessionStore {
  readonly durable = true;
  readonly #url: string;
  readonly #lock: LeaseLock;
  #connection: Promise<Connection> | undefined;
  #isClosed = false;

  constructor(url: string, options: RedisSessionStoreOptions = {}) {
    this.#url = url;
    this.#lock = new LeaseLock({
      acquire: (key, token, leaseMs, waitMs) => this.#holds(ACQUIRE, leaseKeys(key), token, leaseMs, waitMs),
      renew: (key, token, leaseMs) => this.#holds(RENEW, [leaseKey(key)], token, leaseMs),
      release: async (key, token) => void await this.#run(RELEASE, leaseKeys(key), token),
    }, options.leaseMs ?? LEASE_MS);
  }

  lock(key: string, signal: AbortSignal): Promise<Lease> {
    return this.#lock.lock(key, signal);
  }

  async load(key: string): Promise<SessionRecord | undefined> {
    const [bytes, servedBy] = await this.#command(({ binary }) =>
      binary.hmGet(sessionKey(key), ["bytes", "served_by"])
    );
    if (!bytes || !servedBy) return undefined;
    return { ...decodeSession(bytes), servedBy: servedBy.toString() };
  }

  async save(key: string, { servedBy, ...session }: SessionRecord, ttlMs: number, lease: Lease): Promise<void> {
    const { buffer } = encodeSession(session);
    await this.#write(SAVE, key, lease, Buffer.from(buffer), servedBy, ttlMs);
  }

  touch(key: string, servedBy: string, ttlMs: number): Promise<boolean> {
    return this.#holds(TOUCH, [sessionKey(key), ALL], key, servedBy, ttlMs);
  }

  async delete(key: string, lease: Lease): Promise<void> {
    await this.#write(DELETE, key, lease);
  }

  async count(): Promise<number> {
    return Number(await this.#run(COUNT, [ALL]));
  }

  async close(): Promise<void> {
    await this.#lock.close();
    this.#isClosed = true;
    (await this.#connection?.catch(() => undefined))?.close();
  }

  // Changes a session, and nothing where the lease is lost.
  async #write(script: string, key: string, { token }: Lease, ...args: readonly Argument[]): Promise<void> {
    if (!await this.#holds(script, [sessionKey(key), ALL, leaseKey(key)], key, token, ...args)) throw leaseLost();
  }

  async #holds(script: string, keys: string[], ...args: readonly Argument[]): Promise<boolean> {
    return await this.#run(script, keys, ...args) === 1;
  }

  #run(script: string, keys: string[], ...args: readonly Argument[]): Promise<unknown> {
    const values = args.map((arg) => typeof arg === "number" ? `${arg}` : arg);
    return this.#command(({ client }) => client.eval(script, { keys, arguments: values }));
  }

  async #command<T>(send: (connection: Connection) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new Error("The session store is closed");
    const connection = await (this.#connection ??= connect(this.#url));
    await bounded(connection.tried);
    try {
      return await bounded(send(connection));
    } catch (error) {
      // That the client has no connection says less than why it has none.
      throw connection.client.isReady ? error : connection.failure() ?? error;
    }
  }
}

type Argument = string | number | Buffer;

type Client = ReturnType<typeof createClient>;

interface Connection {
  readonly client: Client;
  /** Answers with bytes. */
  readonly binary: Pick<ReturnType<typeof asBinary>, "hmGet">;
  /** Resolves when the first attempt to connect has ended, well or not. */
  readonly tried: Promise<void>;
  /** What went wrong last. */
  failure(): unknown;
  close(): void;
}

// A client that goes on connecting until it is closed.
async function connect(url: string): Promise<Connection> {
  const { createClient, RESP_TYPES } = await import("@redis/client");
  const client: Client = createClient({
    url,
    disableOfflineQueue: true,
    pingInterval: PING_MS,
    maintNotifications: "disabled",
    socket: {
      connectTimeout: COMMAND_MS,
      socketTimeout: SILENCE_MS,
      reconnectStrategy: (retries) => Math.min(FIRST_RECONNECT_MS * 2 ** retries, LAST_RECONNECT_MS),
    },
  });
  let failure: unknown;
  const tried = Promise.withResolvers<void>();
  client.on("ready", () => tried.resolve());
  client.on("error", (error: unknown) => {
    failure = error;
    tried.resolve();
  });
  client.connect().catch(() => {}); // rejects when it is closed before it was there
  return {
    client,
    binary: asBinary(client, RESP_TYPES.BLOB_STRING),
    tried: tried.promise,
    failure: () => failure,
    close: () => client.destroy(),
  };
}

function asBinary(client: Client, type: 36) {
  return client.withTypeMapping({ [type]: Buffer });
}

// A connection may hang, and the client waits.
async function bounded<T>(answer: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Redis did not answer within ${COMMAND_MS} ms`)), COMMAND_MS);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
