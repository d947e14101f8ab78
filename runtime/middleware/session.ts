// Sessions around chat turns: one turn at a time, bounded history, idle expiry, a bound on their number.
import type { ChatCall, Interceptor, Invoke, Reply, SessionSnapshot } from "../core/call.ts";
import type { SessionBounds, SessionEnd } from "../core/define.ts";
import { ModelError } from "../core/error.ts";
import type { Logger } from "../core/log.ts";
import type { Pin } from "../core/registry.ts";
import { linkSignals, NEVER, pause } from "../core/signal.ts";
import type { Lease, SessionRecord, SessionStore } from "./session_store.ts";
import { runTurn } from "./session_turn.ts";

/** A session that has ended, for its function's `close`. */
export interface EndedSession {
  readonly model: string;
  /** The load of the function that served it. */
  readonly revision: number;
  readonly snapshot: SessionSnapshot;
  readonly reason: SessionEnd;
}

/** What a call says of the function that is to answer it. */
type Target = Pick<ChatCall, "model" | "version" | "revision">;

/** The options of {@linkcode Sessions}. */
export interface SessionsOptions {
  readonly store: SessionStore;
  /** Sessions of all functions together. */
  readonly maxSessions: number;
  /** Keeps the load of the function that answers the call, until the session ends. Throws `not_found`. */
  readonly pin: (call: Target) => Pin;
  /** The bounds that a function declares. */
  readonly boundsOf: (call: Target) => SessionBounds;
  /** Called once for each session that ends. */
  readonly onEnd: (session: EndedSession) => Promise<void>;
  readonly log: Logger;
}

// What this process knows of a session that it served; its history and state are in the store.
interface Live {
  readonly key: string;
  readonly model: string;
  readonly id: string;
  /** A session ends on the load of its function on which it began. */
  pin: Pin;
  bounds: SessionBounds;
  turns: number;
  /** Whether the store has it. */
  saved: boolean;
  /** In use: until it is touched. Else: until it ends. */
  timer: ReturnType<typeof setTimeout> | undefined;
}

const MAX_TIMER_MS = 2 ** 31 - 1;
/** Sessions in use are touched twice in their idle time, but not more often than that. */
const MIN_TOUCH_MS = 100;
/** How much longer than its idle time a store keeps a session, so that whoever ends it finds it. */
const MIN_SPARE_MS = 10_000;
const MAX_SPARE_MS = 300_000;
/** Between two attempts to end a session whose store does not answer. */
const MIN_RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;

/** The sessions that this process serves. */
export class Sessions {
  readonly #options: SessionsOptions;
  /** This process among those that share the store. */
  readonly #self: string = crypto.randomUUID();
  /** Least recently used first. */
  readonly #live = new Map<string, Live>();
  /** Open streams by the name under which they hold a session. */
  readonly #holds = new Map<string, number>();
  /** What goes on in the background. */
  readonly #pending = new Set<Promise<void>>();
  readonly #stop = new AbortController();

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** How many sessions this process serves. */
  get size(): number {
    return this.#live.size;
  }

  /** Keeps a session alive while a stream that serves it is open; returns what lets it go. */
  hold(model: string, version: string | undefined, id: string): () => void {
    const name = nameOf(model, version, id);
    this.#holds.set(name, (this.#holds.get(name) ?? 0) + 1);
    for (const live of this.#namedBy(model, version, id)) {
      this.#touch(live);
      this.#keep(live);
    }
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const left = this.#holds.get(name)! - 1;
      if (left > 0) this.#holds.set(name, left);
      else this.#holds.delete(name);
      for (const live of this.#namedBy(model, version, id)) {
        this.#touch(live);
        this.#rest(live);
      }
    };
  }

  /** Holds a session if it exists, in the store at least. */
  async holdExisting(model: string, version: string | undefined, id: string): Promise<(() => void) | undefined> {
    const { store } = this.#options;
    const key = this.#keyOf(model, version, id);
    if (!this.#live.has(key)) {
      if (!store.durable) return undefined;
      const record = await store.load(key);
      if (!record || version !== undefined && record.version !== version) return undefined;
      if (!this.#live.has(key)) this.#takeOver(key, id, { model, version: record.version }, record);
    }
    return this.hold(model, version, id);
  }

  /** Ends a session that its client is done with. A turn in progress finishes; one that comes later begins a new one. */
  async end(model: string, version: string | undefined, id: string): Promise<void> {
    const release = await this.holdExisting(model, version, id);
    const live = release && this.#live.get(this.#keyOf(model, version, id));
    if (live) this.#end(live, "ended");
    release?.();
  }

  /** The interceptor that gives chat calls their session. */
  get interceptor(): Interceptor {
    return (next) => (call) => {
      if (call.kind !== "chat") return next(call);
      return call.session ? this.#turnOfGiven(next, call) : this.#turn(next, call);
    };
  }

  /** Says in the log what a durable store holds, or that it cannot be reached. */
  greet(): void {
    const { store, log } = this.#options;
    if (!store.durable) return;
    this.#track(
      store.count().then((sessions) => log.info("sessions are kept outside of this process", { sessions }), () => {}),
    );
  }

  /** Ends every session at a shutdown; those in a durable store go on elsewhere. */
  async endAll(reason: SessionEnd): Promise<void> {
    this.#stop.abort();
    for (const live of this.#live.values()) {
      if (this.#options.store.durable) this.#forget(live);
      else this.#end(live, reason);
    }
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  /** Ends the sessions of a replaced load that nobody uses right now. */
  endIdle(revision: number, reason: SessionEnd): void {
    for (const live of this.#live.values()) {
      if (live.pin.revision === revision && this.#isIdle(live)) this.#end(live, reason);
    }
  }

  // Whoever names a version that a session of this id is not with has one beside it.
  #keyOf(model: string, version: string | undefined, id: string): string {
    const key = sessionKey(model, id);
    if (version === undefined) return key;
    const beside = nameOf(model, version, id);
    if (this.#live.has(beside)) return beside;
    const live = this.#live.get(key);
    return live === undefined || live.pin.version === version ? key : beside;
  }

  // What a stream that holds this name keeps alive.
  *#namedBy(model: string, version: string | undefined, id: string): Generator<Live> {
    const live = this.#live.get(sessionKey(model, id));
    if (live && (version === undefined || live.pin.version === version)) yield live;
    const beside = version === undefined ? undefined : this.#live.get(nameOf(model, version, id));
    if (beside) yield beside;
  }

  #isIdle({ key, model, id, pin, turns }: Live): boolean {
    return turns === 0 && !this.#holds.has(key) && !this.#holds.has(nameOf(model, pin.version, id));
  }

  async *#turn(next: Invoke, turn: ChatCall): AsyncIterable<Reply, void, undefined> {
    const { store } = this.#options;
    let key = this.#keyOf(turn.model, turn.version, turn.sessionId);
    for (;;) {
      const live = this.#begin(key, turn);
      try {
        const lease = await store.lock(key, turn.signal);
        try {
          const record = await store.load(key);
          if (await this.#isBeside(key, turn, record)) {
            key = nameOf(turn.model, turn.version, turn.sessionId);
            continue;
          }
          if (record) await this.#adopt(live, record);
          yield* this.#runLocked(next, turn, live, lease, record);
          return;
        } finally {
          lease.release();
        }
      } finally {
        live.turns--;
        this.#rest(live);
      }
    }
  }

  // The caller brings the session and keeps it; here it begins and ends with the turn.
  async *#turnOfGiven(next: Invoke, turn: ChatCall): AsyncIterable<Reply, void, undefined> {
    const pin = this.#options.pin(turn);
    let left = undefined as SessionSnapshot | undefined;
    const keep = (snapshot: SessionSnapshot) => {
      left = snapshot;
      return Promise.resolve();
    };
    try {
      const call = { ...turn, version: pin.version, revision: pin.revision };
      const bounds = this.#options.boundsOf(call);
      yield* runTurn(next, call, { bounds, save: keep, saveInterrupted: keep });
    } finally {
      this.#conclude(turn.model, pin, () => this.#tell(turn.model, pin, left, "ended"));
    }
  }

  // Whether the turn belongs to a session beside the one of this key, which another process began.
  async #isBeside(key: string, { model, version, sessionId }: ChatCall, record?: SessionRecord): Promise<boolean> {
    const { store } = this.#options;
    if (version === undefined || !store.durable || this.#live.get(key)?.saved) return false;
    const beside = nameOf(model, version, sessionId);
    if (key === beside) return false;
    return record ? record.version !== version : await store.load(beside) !== undefined;
  }

  // What another process did with the session since this one served it.
  async #adopt(live: Live, { version, servedBy }: SessionRecord): Promise<void> {
    live.saved = true;
    if (servedBy !== this.#self) await this.#options.store.touch(live.key, this.#self, ttlOf(live));
    if (version === live.pin.version) return;
    const pin = this.#pinTo(live.model, version);
    if (!pin) return;
    live.pin.release();
    live.pin = pin;
    live.bounds = this.#options.boundsOf({ model: live.model, ...pin });
  }

  async *#runLocked(
    next: Invoke,
    turn: ChatCall,
    live: Live,
    lease: Lease,
    record: SessionRecord | undefined,
  ): AsyncIterable<Reply, void, undefined> {
    const { store, log } = this.#options;
    const { version, revision } = live.pin;
    const linked = lease.lost === NEVER ? undefined : linkSignals(turn.signal, lease.lost);
    const signal = linked?.signal ?? turn.signal;
    const save = async (snapshot: SessionSnapshot) => {
      await store.save(live.key, { snapshot, version, servedBy: this.#self }, ttlOf(live), lease);
      live.saved = true;
    };
    const saveInterrupted = (snapshot: SessionSnapshot) =>
      save(snapshot).catch((cause) => {
        log.warn("What an interrupted turn said cannot be kept", { model: live.model, requestId: turn.id, cause });
      });
    try {
      const call = { ...turn, signal, version, revision, session: record?.snapshot };
      yield* runTurn(next, call, { bounds: live.bounds, save, saveInterrupted });
    } finally {
      linked?.[Symbol.dispose]();
    }
  }

  #begin(key: string, call: ChatCall): Live {
    let live = this.#live.get(key);
    if (live) {
      this.#live.delete(key); // moves it to the most recently used end
      this.#live.set(key, live);
    } else {
      this.#makeRoom();
      live = this.#add(key, call.sessionId, call, this.#options.pin(call));
    }
    live.turns++;
    this.#keep(live);
    return live;
  }

  // A stream is there for a session that another process served.
  #takeOver(key: string, id: string, target: Target, record: SessionRecord): void {
    this.#makeRoom();
    const { model } = target;
    const pin = this.#pinTo(model, record.version) ?? this.#options.pin({ model, version: undefined });
    const live = this.#add(key, id, target, pin);
    live.saved = true;
    this.#touch(live);
  }

  #add(key: string, id: string, { model }: Target, pin: Pin): Live {
    const bounds = this.#options.boundsOf({ model, version: pin.version, revision: pin.revision });
    const live: Live = { key, model, id, pin, bounds, turns: 0, saved: false, timer: undefined };
    this.#live.set(key, live);
    return live;
  }

  // Undefined where the version is not served here: the session goes on with the one that is.
  #pinTo(model: string, version: string): Pin | undefined {
    try {
      return this.#options.pin({ model, version });
    } catch (error) {
      if (!(error instanceof ModelError) || error.code !== "not_found") throw error;
      this.#options.log.warn("A session goes on with another version: its own is not served here", { model, version });
      return undefined;
    }
  }

  #makeRoom(): void {
    const { maxSessions } = this.#options;
    if (this.#live.size < maxSessions) return;
    for (const live of this.#live.values()) {
      if (this.#isIdle(live)) return this.#end(live, "evicted");
    }
    throw new ModelError(
      "resource_exhausted",
      `Cannot begin a session: ${maxSessions} are in use (option maxSessions) and none is idle`,
      { details: { retryAfterMs: 1000 } },
    );
  }

  // A session in use does not end here; a durable store has to hear of it from time to time.
  #keep(live: Live): void {
    clearTimeout(live.timer);
    live.timer = undefined;
    if (!this.#options.store.durable) return;
    live.timer = setTimeout(() => {
      this.#touch(live);
      this.#keep(live);
    }, Math.max(MIN_TOUCH_MS, Math.min(live.bounds.idleMs / 2, MAX_TIMER_MS)));
  }

  // Also says that it is this process that ends the session.
  #touch(live: Live): void {
    const { store } = this.#options;
    if (!store.durable || !live.saved) return;
    this.#track(store.touch(live.key, this.#self, ttlOf(live)).then(() => {}, () => {}));
  }

  // A session that no turn and no stream uses any more waits for its idle time.
  #rest(live: Live): void {
    if (this.#live.get(live.key) !== live || !this.#isIdle(live)) return;
    if (!live.saved) return this.#forget(live); // its first turn failed: there is nothing to keep
    this.#live.delete(live.key); // to the most recently used end
    this.#live.set(live.key, live);
    clearTimeout(live.timer);
    live.timer = setTimeout(() => this.#end(live, "idle"), Math.min(live.bounds.idleMs, MAX_TIMER_MS));
  }

  #remove(live: Live): void {
    clearTimeout(live.timer);
    live.timer = undefined;
    this.#live.delete(live.key);
  }

  #forget(live: Live): void {
    this.#remove(live);
    live.pin.release();
  }

  #end(live: Live, reason: SessionEnd): void {
    this.#remove(live);
    this.#conclude(live.model, live.pin, () => this.#close(live, reason));
  }

  #conclude(model: string, pin: Pin, close: () => Promise<void>): void {
    const ending = close()
      .catch((cause) => this.#options.log.error("Cannot end a session cleanly", { model, cause }))
      .finally(() => pin.release());
    this.#track(ending);
  }

  async #close(live: Live, reason: SessionEnd): Promise<void> {
    const snapshot = this.#options.store.durable ? await this.#takeLater(live) : await this.#take(live, NEVER);
    await this.#tell(live.model, live.pin, snapshot, reason);
  }

  async #tell(
    model: string,
    { revision }: Pin,
    snapshot: SessionSnapshot | undefined,
    reason: SessionEnd,
  ): Promise<void> {
    if (snapshot) await this.#options.onEnd({ model, revision, snapshot, reason });
  }

  // A store that cannot be reached is asked again, until it has forgotten the session or the session is used again.
  async #takeLater(live: Live): Promise<SessionSnapshot | undefined> {
    const { signal } = this.#stop;
    const end = Date.now() + ttlOf(live);
    for (
      let retryMs = MIN_RETRY_MS;
      !signal.aborted && Date.now() < end;
      retryMs = Math.min(2 * retryMs, MAX_RETRY_MS)
    ) {
      try {
        return await this.#take(live, signal);
      } catch {
        await pause(retryMs, signal).catch(() => {}); // the store's failure is in the log
        if (this.#live.has(live.key)) return undefined;
      }
    }
    return undefined;
  }

  // Takes a session out of the store, unless another process has served or held it since.
  async #take({ key }: Live, signal: AbortSignal): Promise<SessionSnapshot | undefined> {
    const { store } = this.#options;
    const lease = await store.lock(key, signal); // a turn that begins meanwhile waits, and finds a new session
    try {
      const record = await store.load(key);
      if (record?.servedBy !== this.#self) return undefined;
      await store.delete(key, lease);
      return record.snapshot;
    } finally {
      lease.release(); // before the function's close: one that hangs holds nobody up
    }
  }

  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#pending.delete(tracked));
    this.#pending.add(tracked);
  }
}

/** The key of a session in its store. */
export function sessionKey(model: string, id: string): string {
  return `${model}\0${id}`;
}

// Also the key of a session that is beside another one of its id.
function nameOf(model: string, version: string | undefined, id: string): string {
  return sessionKey(version === undefined ? model : `${model}@${version}`, id);
}

function ttlOf({ bounds: { idleMs } }: Live): number {
  return idleMs + Math.max(MIN_SPARE_MS, Math.min(idleMs, MAX_SPARE_MS));
}
