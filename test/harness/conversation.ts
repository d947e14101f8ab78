// A conversation behind the sessions' interceptor, without a server around it.
import type { ChatCall, ChatMessage, Reply, SessionSnapshot } from "../../runtime/core/call.ts";
import { ModelError } from "../../runtime/core/error.ts";
import type { Pin } from "../../runtime/core/registry.ts";
import { abortable } from "../../runtime/core/signal.ts";
import { type EndedSession, sessionKey, Sessions } from "../../runtime/middleware/session.ts";
import { MemorySessionStore, type SessionStore } from "../../runtime/middleware/session_store.ts";
import { chatCall, collect, recordLog, textsOf } from "./calls.ts";

export const BOUNDS = { idleMs: 1000, maxTurns: 10, maxCharacters: 1000 };

// The loads of a function, and how many sessions keep each.
export class Pins {
  version = "1";
  revision = 1;
  readonly held: Record<number, number> = {};
  /** Versions that are not served here. */
  readonly missing = new Set<string>();

  pin({ version = this.version, revision = this.revision }: Pick<ChatCall, "version" | "revision">): Pin {
    if (this.missing.has(version)) throw new ModelError("not_found", `There is no version "${version}"`);
    this.held[revision] = (this.held[revision] ?? 0) + 1;
    return { version, revision, release: () => this.held[revision]!-- };
  }
}

// A function that counts its turns and repeats what it hears. "wait" lets it wait, "fail" fails at once,
// "break" fails after its first piece, "quiet" says nothing, "last" has a piece that is marked so.
export function conversation(
  options: {
    readonly maxSessions?: number;
    readonly bounds?: Partial<typeof BOUNDS>;
    readonly close?: () => Promise<void>;
    /** @default one of its own, in memory */
    readonly store?: SessionStore;
  } = {},
) {
  const { log, records } = recordLog();
  const store = options.store ?? new MemorySessionStore();
  const ended: EndedSession[] = [];
  const seen: (SessionSnapshot | undefined)[] = [];
  const answered: string[] = [];
  const gates: (() => void)[] = [];
  const pins = new Pins();
  const sessions = new Sessions({
    store,
    maxSessions: options.maxSessions ?? 10,
    pin: (call) => pins.pin(call),
    boundsOf: () => ({ ...BOUNDS, ...options.bounds }),
    onEnd: (session) => (ended.push(session), options.close?.() ?? Promise.resolve()),
    log,
  });
  async function* chat(call: ChatCall): AsyncGenerator<Reply, void, undefined> {
    const { content } = call.message;
    seen.push(call.session);
    answered.push(`${call.version} r${call.revision}`);
    if (content === "fail") throw new ModelError("aborted", "failed");
    if (content !== "quiet") yield { type: "delta", index: 0, text: `re: ${content}` };
    if (content === "break") throw new ModelError("aborted", "broke");
    if (content === "wait") await abortable(new Promise<void>((resolve) => gates.push(resolve)), call.signal);
    yield { type: "session", state: (call.session?.state as number ?? 0) + 1 };
    if (content === "last") yield { type: "delta", index: 1, text: "!", final: true };
  }
  const invoke = sessions.interceptor((call) => chat(call as ChatCall));
  const say = (content: string, sessionId = "s", call: Partial<ChatCall> = {}) =>
    collect(invoke(chatCall(content, { ...call, sessionId }))).then(textsOf);
  const stored = (sessionId = "s", model = "model") =>
    store.load(sessionKey(model, sessionId)).then((record) => record?.snapshot);
  return { sessions, invoke, say, stored, ended, seen, answered, pins, records, openGate: () => gates.shift()!() };
}

export const contents = (history: readonly ChatMessage[] = []): string[] => history.map(({ content }) => content);
export const endings = (ended: readonly EndedSession[]): string[] =>
  ended.map(({ snapshot, reason }) => `${snapshot.id} ${reason}`);
