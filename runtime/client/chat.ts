// Conversations.
import type { Rpc } from "./connection.ts";
import { ClientError } from "./error.ts";
import { type AssistantMessage, CHAT_STREAM, type UserMessage } from "./messages.ts";
import { boundsOf, type Options, paramMetadata, type Target } from "./target.ts";
import type { Chat, TurnOptions } from "./types.ts";

/** The options of a conversation with the types of its params erased. */
export interface ChatRequest extends Options {
  readonly sessionId?: string | undefined;
  readonly heartbeatMs?: number | undefined;
}

/** One session over one stream at a time. */
export class Conversation implements Chat {
  readonly sessionId: string;
  readonly #target: Target;
  readonly #options: ChatRequest;
  #rpc: Rpc<UserMessage, AssistantMessage> | undefined;
  #answers: AsyncIterator<AssistantMessage> | undefined;

  constructor(target: Target, options: ChatRequest) {
    this.#target = target;
    this.#options = options;
    this.sessionId = options.sessionId ?? crypto.randomUUID();
  }

  async *send(content: string, _options: TurnOptions = {}): AsyncGenerator<string, void, undefined> {
    const rpc = this.#open();
    rpc.write({ session_id: this.sessionId, content });
    let finished = false;
    try {
      while (!finished) {
        const { value, done } = await this.#answers!.next();
        if (done) throw new ClientError("unavailable", "The chat's stream has ended");
        finished = value.finish_reason;
        if (value.content !== "") yield value.content;
      }
    } finally {
      if (!finished) {
        rpc.cancel();
        this.#rpc = undefined;
      }
    }
  }

  async close(): Promise<void> {
    const rpc = this.#rpc;
    this.#rpc = undefined;
    if (!rpc) return;
    rpc.end();
    while (!(await this.#answers!.next()).done);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #open(): Rpc<UserMessage, AssistantMessage> {
    if (this.#rpc && !this.#rpc.hasEnded) return this.#rpc;
    const bounds = boundsOf(this.#options);
    const metadata = {
      "model-id": this.#target.model,
      ...paramMetadata(this.#options.params),
      ...this.#options.metadata,
      "request-id": bounds.requestId,
    };
    this.#rpc = this.#target.connection.open(CHAT_STREAM, { ...bounds, metadata });
    this.#answers = this.#rpc[Symbol.asyncIterator]();
    return this.#rpc;
  }
}
