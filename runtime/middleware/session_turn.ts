// One turn of a session: what it leaves, and when that is saved.
import type { ChatCall, ChatMessage, Invoke, Reply, SessionSnapshot } from "../core/call.ts";
import type { SessionBounds } from "../core/define.ts";

/** What {@linkcode runTurn} is told of the session around the turn. */
export interface TurnOptions {
  readonly bounds: SessionBounds;
  /** Keeps what the turn leaves; where it rejects, the turn fails. */
  readonly save: (snapshot: SessionSnapshot) => Promise<void>;
  /** Keeps what a turn has said that was cut short; does not reject. */
  readonly saveInterrupted: (snapshot: SessionSnapshot) => Promise<void>;
}

/** Answers one turn of the session in `call.session`. */
export async function* runTurn(
  next: Invoke,
  call: ChatCall,
  { bounds, save, saveInterrupted }: TurnOptions,
): AsyncIterable<Reply, void, undefined> {
  const before = call.session;
  let text = "";
  let saved = false;
  const after = (state: unknown, interrupted: boolean): SessionSnapshot => {
    saved = true;
    const answer: ChatMessage = { role: "assistant", content: text, ...interrupted && { interrupted: true as const } };
    const history = trimHistory([...before?.history ?? [], call.message, answer], bounds);
    return { id: call.sessionId, turn: (before?.turn ?? 0) + 1, history, state };
  };
  let state: { readonly value: unknown } | undefined;
  try {
    for await (const reply of next(call)) {
      if (reply.type === "session") {
        state = { value: reply.state };
        continue;
      }
      if (reply.type === "delta") text += reply.text;
      // Saved before the last piece leaves: what was answered is not lost.
      if (reply.type === "delta" && reply.final && state) await save(after(state.value, false));
      yield reply;
    }
    if (state && !saved) await save(after(state.value, false));
  } finally {
    // A turn that was cut short keeps what was said; one that said nothing leaves no trace. Without a state the next
    // turn begins with a new one.
    if (!saved && text !== "") await saveInterrupted(after(before?.state, true));
  }
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
