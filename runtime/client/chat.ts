// Conversations: a session on the server, over one stream after another.
import { type Bounds, isAborted, onAbort, reasonOf } from "./bounds.ts";
import type { Rpc } from "./connection.ts";
import { ClientError, isConnectionLost } from "./error.ts";
import { type AssistantMessage, CHAT_STREAM, type UserMessage } from "./messages.ts";
import { Attempts } from "./retry.ts";
import { boundsOf, callMetadata, type Options, type Target } from "./target.ts";
import type { Chat, TurnOptions } from "./types.ts";

/** The options of a conversation with the types of its params erased. */
export interface ChatRequest extends Options {
  readonly sessionId?: string | undefined;
  readonly heartbeatMs?: number | undefined;
}

/** What a stream that is closed gets to end well. */
const CLOSE_MS = 1_000;

/** A stream, whose messages are answered one after the other. */
interface Line {
  readonly rpc: Rpc<UserMessage, AssistantMessage>;
  readonly answers: AsyncIterator<AssistantMessage, void, undefined>;
}

/** One session, over one stream at a time. */
export class Conversation implements Chat {
  readonly sessionId: string;
  readonly #target: Target;
  readonly #bounds: Bounds;
  readonly #metadata: Readonly<Record<string, string>>;
  readonly #heartbeatMs: number;
  readonly #closing = new AbortController();
  #line: Line | undefined;
  #isAnswering = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The heartbeat that waits for its answer; it does not reject. */
  #heartbeat: Promise<void> = Promise.resolve();

  constructor(target: Target, options: ChatRequest) {
    const { sessionId = crypto.randomUUID(), heartbeatMs = 20_000 } = options;
    if (!(heartbeatMs >= 0 && heartbeatMs < 2 ** 31)) {
      throw new RangeError(`Cannot chat: heartbeatMs is ${heartbeatMs}, wanted 0 to ${2 ** 31 - 1}`);
    }
    const bounds = boundsOf(target, options);
    this.sessionId = sessionId;
    this.#target = target;
    this.#bounds = { ...bounds, signals: [...bounds.signals, this.#closing.signal] };
    this.#metadata = callMetadata(target, options, bounds.requestId);
    this.#heartbeatMs = heartbeatMs;
    onAbort(this.#bounds.signals, () => clearTimeout(this.#timer));
  }

  get isConnected(): boolean {
    return this.#line !== undefined && !this.#line.rpc.hasEnded;
  }

  async *send(content: string, options: TurnOptions = {}): AsyncGenerator<string, void, undefined> {
    if (content === "") throw this.#error("invalid_argument", "Cannot send an empty message: it would be a heartbeat");
    if (this.#isAnswering) throw this.#error("failed_precondition", "Cannot send: an answer is still being read");
    this.#isAnswering = true;
    clearTimeout(this.#timer);
    const turn = new Turn(this.#bounds, options);
    let isFinished = false;
    let line: Line | undefined;
    try {
      await turn.orAbort(this.#heartbeat);
      line = await this.#connect(turn.bounds);
      const { rpc, answers } = line;
      turn.onAbort(() => rpc.cancel());
      rpc.write({ session_id: this.sessionId, content });
      while (!isFinished) {
        const piece = await next(answers);
        isFinished = piece.finish_reason;
        if (piece.content !== "") yield piece.content;
      }
    } catch (error) {
      throw turn.reason ?? (line ? this.#interrupted(error) : error);
    } finally {
      // A reader that leaves ends the turn: what was said so far stays in the session.
      if (!isFinished && line) {
        line.rpc.cancel();
        this.#line = undefined;
      }
      turn.end();
      this.#isAnswering = false;
      this.#beatLater();
    }
  }

  async close(): Promise<void> {
    const line = this.#line;
    this.#line = undefined;
    clearTimeout(this.#timer);
    if (line && !line.rpc.hasEnded && !this.#isAnswering) {
      line.rpc.end();
      const timer = setTimeout(() => line.rpc.cancel(), CLOSE_MS);
      await this.#heartbeat;
      await line.answers.next().catch(() => {}); // its status: there is nothing left to lose
      clearTimeout(timer);
    }
    this.#closing.abort(this.#error("cancelled", "The chat was closed"));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The stream, or a new one once the server has answered a heartbeat on it: a message is sent to who listens. */
  async #connect(bounds: Bounds): Promise<Line> {
    if (this.#line && this.isConnected) return this.#line;
    this.#line = await new Attempts(this.#target.policy, bounds).run(async () => {
      const rpc = this.#target.connection.open(CHAT_STREAM, { ...this.#bounds, metadata: this.#metadata });
      const line = { rpc, answers: rpc[Symbol.asyncIterator]() };
      const forget = onAbort(bounds.signals, () => rpc.cancel());
      try {
        await this.#beat(line);
        return line;
      } finally {
        forget();
      }
    });
    return this.#line;
  }

  async #beat({ rpc, answers }: Line): Promise<void> {
    rpc.write({ session_id: this.sessionId, content: "" });
    await next(answers);
  }

  // While nothing is said: it keeps the session, and finds out in time that the stream is gone.
  #beatLater(): void {
    clearTimeout(this.#timer);
    if (this.#heartbeatMs === 0 || isAborted(this.#bounds.signals)) return;
    this.#timer = setTimeout(() => {
      const done = this.#line && this.isConnected ? this.#beat(this.#line) : this.#connect(this.#bounds).then(() => {});
      // A failure is no news: the next message, or the next heartbeat, makes a new stream.
      this.#heartbeat = done.catch(() => {}).then(() => {
        if (!this.#isAnswering) this.#beatLater();
      });
    }, this.#heartbeatMs);
  }

  #interrupted(error: unknown): unknown {
    if (!(error instanceof ClientError) || !isConnectionLost(error)) return error;
    const { code, message, details, requestId, retryAfterMs } = error;
    return new ClientError(
      code,
      `The connection broke before the answer was complete (${message}); ` +
        `the message is not sent again: session ${
          JSON.stringify(this.sessionId)
        } goes on with what the server kept of it`,
      { details, requestId, retryAfterMs, cause: error },
    );
  }

  #error(code: "invalid_argument" | "failed_precondition" | "cancelled", message: string): ClientError {
    return new ClientError(code, message, { requestId: this.#bounds.requestId });
  }
}

async function next(answers: Line["answers"]): Promise<AssistantMessage> {
  const { value, done } = await answers.next();
  if (done) throw new ClientError("unavailable", "The server has ended the chat");
  return value;
}

/** What ends one turn before its time. */
class Turn {
  readonly bounds: Bounds;
  readonly #controller = new AbortController();
  readonly #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #forget: (() => void)[] = [];

  constructor(chat: Bounds, { timeoutMs, signal }: TurnOptions) {
    this.bounds = {
      ...chat,
      deadline: timeoutMs === undefined ? undefined : Date.now() + timeoutMs,
      signals: [...chat.signals, this.#controller.signal, ...signal ? [signal] : []],
    };
    if (timeoutMs === undefined) return;
    const late = new ClientError("deadline_exceeded", "The turn's deadline passed before it was answered", {
      requestId: chat.requestId,
    });
    this.#timer = setTimeout(() => this.#controller.abort(late), Math.min(timeoutMs, 2 ** 31 - 1));
  }

  /** Why it was ended, if it was. */
  get reason(): ClientError | undefined {
    const { signals, requestId } = this.bounds;
    return isAborted(signals) ? reasonOf(signals, requestId) : undefined;
  }

  onAbort(action: () => void): void {
    this.#forget.push(onAbort(this.bounds.signals, action));
  }

  /** `promise`, or a rejection as soon as the turn is ended. */
  orAbort(promise: Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.onAbort(() => reject(this.reason));
      promise.then(resolve, reject);
    });
  }

  end(): void {
    clearTimeout(this.#timer);
    for (const forget of this.#forget) forget();
  }
}
