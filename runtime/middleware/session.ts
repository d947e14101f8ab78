// Sessions around chat turns: one turn at a time, bounded history, idle expiry, a bound on their number.
import type { ChatCall, ChatMessage, Interceptor, Invoke, Reply, SessionSnapshot } from "../core/call.ts";
import type { SessionBounds, SessionEnd } from "../core/define.ts";
import { ModelError } from "../core/error.ts";
import type { Logger } from "../core/log.ts";
import type { Pin } from "../core/registry.ts";
import { NEVER } from "../core/signal.ts";
import type { SessionStore } from "./session_store.ts";

/** A session that has ended, for its function's `close`. */
export interface EndedSession {
  readonly model: string;
  /** The load of the function that served it. */
  readonly revision: number;
  readonly snapshot: SessionSnapshot;
  readonly reason: SessionEnd;
}

/** The options of {@linkcode Sessions}. */
export interface SessionsOptions {
  readonly store: SessionStore;
  /** Sessions of all functions together. */
  readonly maxSessions: number;
  /** Keeps the load of the function that answers the call, until the session ends. */
  readonly pin: (call: ChatCall) => Pin;
  /** The bounds that a function declares. */
  readonly boundsOf: (call: Pick<ChatCall, "model" | "version" | "revision">) => SessionBounds;
  /** Called once for each session that ends. */
  readonly onEnd: (session: EndedSession) => Promise<void>;
  readonly log: Logger;
}

// What this process knows of a session; its history and state are in the store.
interface Live {
  readonly model: string;
  readonly id: string;
  /** A session ends on the load of its function on which it began. */
  readonly pin: Pin;
  readonly bounds: SessionBounds;
  turns: number;
  saved: boolean;
  idleTimer: ReturnType<typeof setTimeout> | undefined;
}

/** The sessions that this process serves. */
export class Sessions {
  readonly #options: SessionsOptions;
  /** Least recently used first. */
  readonly #live = new Map<string, Live>();
  /** Open streams by session. */
  readonly #holds = new Map<string, number>();
  readonly #ending = new Set<Promise<void>>();

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** How many sessions are kept. */
  get size(): number {
    return this.#live.size;
  }

  /** Whether the session exists. */
  has(model: string, version: string | undefined, id: string): boolean {
    return this.#live.has(this.#keyOf(model, version, id));
  }

  /** Keeps a session alive while a stream that serves it is open; returns what lets it go. */
  hold(model: string, version: string | undefined, id: string): () => void {
    const key = this.#keyOf(model, version, id);
    this.#holds.set(key, (this.#holds.get(key) ?? 0) + 1);
    this.#disarm(this.#live.get(key));
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const left = this.#holds.get(key)! - 1;
      if (left > 0) this.#holds.set(key, left);
      else this.#holds.delete(key);
      this.#rest(key);
    };
  }

  /** The interceptor that gives chat calls their session. */
  get interceptor(): Interceptor {
    return (next) => (call) => call.kind === "chat" ? this.#turn(next, call) : next(call);
  }

  /** Ends every session, at a shutdown. */
  async endAll(reason: SessionEnd): Promise<void> {
    for (const key of this.#live.keys()) this.#end(key, reason);
    await Promise.all(this.#ending);
  }

  /** Ends the sessions of a replaced load that nobody uses right now. */
  endIdle(revision: number, reason: SessionEnd): void {
    for (const [key, live] of this.#live) {
      if (live.pin.revision === revision && live.turns === 0 && !this.#holds.has(key)) this.#end(key, reason);
    }
  }

  // Whoever names a version that a session of this id is not with has one beside it.
  #keyOf(model: string, version: string | undefined, id: string): string {
    const key = sessionKey(model, id);
    if (version === undefined) return key;
    const own = sessionKey(`${model}@${version}`, id);
    if (this.#live.has(own)) return own;
    const live = this.#live.get(key);
    return live === undefined || live.pin.version === version ? key : own;
  }

  async *#turn(next: Invoke, turn: ChatCall): AsyncIterable<Reply, void, undefined> {
    const key = this.#keyOf(turn.model, turn.version, turn.sessionId);
    const live = this.#begin(key, turn);
    const call = { ...turn, version: live.pin.version, revision: live.pin.revision };
    try {
      const unlock = await this.#options.store.lock(key, call.signal);
      try {
        yield* this.#runLocked(next, call, key, live);
      } finally {
        unlock();
      }
    } finally {
      live.turns--;
      this.#rest(key);
    }
  }

  async *#runLocked(next: Invoke, call: ChatCall, key: string, live: Live): AsyncIterable<Reply, void, undefined> {
    const { store } = this.#options;
    const before = await store.load(key);
    let text = "";
    let saved = false;
    const save = async (state: unknown, interrupted: boolean) => {
      saved = true;
      const answer: ChatMessage = {
        role: "assistant",
        content: text,
        ...interrupted && { interrupted: true as const },
      };
      const history = [...before?.history ?? [], call.message, answer];
      await store.save(key, {
        id: call.sessionId,
        turn: (before?.turn ?? 0) + 1,
        history: trimHistory(history, live.bounds),
        state,
      });
      live.saved = true;
    };
    let state: { readonly value: unknown } | undefined;
    try {
      for await (const reply of next({ ...call, session: before })) {
        if (reply.type === "session") {
          state = { value: reply.state };
          continue;
        }
        if (reply.type === "delta") text += reply.text;
        // Saved before the last piece leaves: what was answered is not lost.
        if (reply.type === "delta" && reply.final && state) await save(state.value, false);
        yield reply;
      }
      if (state && !saved) await save(state.value, false);
    } finally {
      // A turn that was cut short keeps what was said; one that said nothing leaves no trace.
      if (!saved && text !== "") {
        await save(before?.state, true); // without a state the next turn begins with a new one
      }
    }
  }

  #begin(key: string, call: ChatCall): Live {
    let live = this.#live.get(key);
    if (live) {
      this.#live.delete(key); // moves it to the most recently used end
    } else {
      if (this.#live.size >= this.#options.maxSessions) this.#evict();
      live = {
        model: call.model,
        id: call.sessionId,
        pin: this.#options.pin(call),
        bounds: this.#options.boundsOf(call),
        turns: 0,
        saved: false,
        idleTimer: undefined,
      };
    }
    this.#live.set(key, live);
    this.#disarm(live);
    live.turns++;
    return live;
  }

  #evict(): void {
    for (const [key, live] of this.#live) {
      if (live.turns > 0 || this.#holds.has(key)) continue;
      this.#end(key, "evicted");
      return;
    }
    throw new ModelError(
      "resource_exhausted",
      `Cannot begin a session: ${this.#options.maxSessions} are in use (option maxSessions) and none is idle`,
      { details: { retryAfterMs: 1000 } },
    );
  }

  #disarm(live: Live | undefined): void {
    clearTimeout(live?.idleTimer);
    if (live) live.idleTimer = undefined;
  }

  // A session that no turn and no stream uses any more waits for its idle time.
  #rest(key: string): void {
    const live = this.#live.get(key);
    if (!live || live.turns > 0 || this.#holds.has(key)) return;
    this.#disarm(live);
    if (!live.saved) {
      this.#live.delete(key); // its first turn failed: there is nothing to keep
      live.pin.release();
      return;
    }
    this.#live.delete(key); // to the most recently used end
    this.#live.set(key, live);
    live.idleTimer = setTimeout(() => this.#end(key, "idle"), Math.min(live.bounds.idleMs, 2 ** 31 - 1));
  }

  #end(key: string, reason: SessionEnd): void {
    const live = this.#live.get(key)!;
    this.#disarm(live);
    this.#live.delete(key);
    const ending = this.#close(key, live, reason)
      .catch((cause) => this.#options.log.error("Cannot end a session cleanly", { model: live.model, cause }))
      .finally(() => {
        live.pin.release();
        this.#ending.delete(ending);
      });
    this.#ending.add(ending);
  }

  async #close(key: string, live: Live, reason: SessionEnd): Promise<void> {
    const { store, onEnd } = this.#options;
    const unlock = await store.lock(key, NEVER); // a turn that begins meanwhile waits, and finds a new session
    let snapshot: SessionSnapshot | undefined;
    try {
      snapshot = await store.load(key);
      if (snapshot) await store.delete(key);
    } finally {
      unlock(); // before the function's close: one that hangs holds nobody up
    }
    if (snapshot) await onEnd({ model: live.model, revision: live.pin.revision, snapshot, reason });
  }
}

/** The key of a session in its store. */
export function sessionKey(model: string, id: string): string {
  return `${model}\0${id}`;
}

/** The newest turns (a user's message and its answer) that fit in the bounds. */
export function trimHistory(history: readonly ChatMessage[], bounds: SessionBounds): readonly ChatMessage[] {
  let start = Math.max(0, history.length - 2 * bounds.maxTurns);
  let characters = history.slice(start).reduce((sum, message) => sum + message.content.length, 0);
  while (characters > bounds.maxCharacters && start < history.length) {
    characters -= history[start]!.content.length + (history[start + 1]?.content.length ?? 0);
    start += 2;
  }
  return history.slice(start);
}
