// A conversation: what a person types, or a turn for each line of a pipe.
import { type Chat, ClientError } from "../client.ts";
import { abortable, linkSignals } from "../core/signal.ts";
import { failureText } from "./failure.ts";
import { note } from "./output.ts";
import { lines } from "./rows.ts";
import { callOptions, type Run, stdin } from "./run.ts";
import { writeTokens } from "./tokens.ts";
import { TypedLines } from "./typed_lines.ts";

/** Says `text`, or what comes from stdin, and writes the answers. */
export async function chat(run: Run, text: string | undefined): Promise<void> {
  await using conversation = new Conversation(run);
  if (text !== undefined) return await conversation.say(text);
  if (!Deno.stdin.isTerminal()) {
    for await (const line of lines(stdin(run), "stdin")) await conversation.say(line);
    return;
  }
  await conversation.talk();
}

class Conversation implements AsyncDisposable {
  readonly #run: Run;
  readonly #chat: Chat;
  #turns = 0;

  constructor(run: Run) {
    const { session } = run.config;
    // A deadline is one turn's.
    const { timeoutMs: _, signal: __, ...options } = callOptions(run);
    this.#run = run;
    this.#chat = run.client.chat({ ...options, ...session !== undefined && { sessionId: session } });
  }

  /** One turn; nothing for an empty line. */
  async say(text: string, signal: AbortSignal = this.#run.signal): Promise<void> {
    if (text.trim() === "") return;
    const { output, config } = this.#run;
    const { json, timeoutMs } = config;
    const pieces = this.#chat.send(text, { signal, ...timeoutMs !== undefined && { timeoutMs } });
    await writeTokens(pieces, output, { json, turn: ++this.#turns, sessionId: this.#chat.sessionId });
  }

  /** Turns until the person leaves; Ctrl-C ends an answer, and a failed turn not the conversation. */
  async talk(): Promise<void> {
    const { signal } = this.#run;
    let interrupt: (() => void) | undefined;
    using typed = new TypedLines(() => interrupt ? interrupt() : note("\nCtrl-D leaves"));
    for (;;) {
      const line = await abortable(typed.next(), signal);
      if (line === undefined) break;
      using turn = linkSignals(signal);
      interrupt = () => turn.abort(new DOMException("interrupted", "AbortError"));
      try {
        await this.say(line, turn.signal);
      } catch (error) {
        if (signal.aborted || !(error instanceof ClientError)) throw error;
        note(turn.signal.aborted ? "(interrupted)" : failureText(error));
      } finally {
        interrupt = undefined;
      }
    }
    note(`\nGo on with --session ${this.#chat.sessionId}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#chat[Symbol.asyncDispose]();
  }
}
