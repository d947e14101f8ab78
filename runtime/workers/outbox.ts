// What an instance answers within a moment leaves as one message: each wakes the other thread, and is written and read by
// itself.
import type { AnyTensor } from "../core/tensor.ts";
import type { FromInstance } from "./messages.ts";
import { withOwnBuffers } from "./transfer.ts";

/** Posts what is to be handed over, with the buffers that move. */
export type PostAll = (messages: FromInstance | readonly FromInstance[], buffers: ArrayBuffer[]) => void;

/** So long after a message the next does not wait for others, in milliseconds: it may be all that comes for a while. */
const GATHER_MS = 1;

// The function may put others in their place.
const { setImmediate } = globalThis as unknown as { readonly setImmediate: (action: () => void) => unknown };
const now = performance.now.bind(performance);

/** Sends an instance's messages, in order. */
export class Outbox {
  readonly #post: PostAll;
  #waiting: FromInstance[] = [];
  #buffers: ArrayBuffer[] = [];
  #postedAt = -Infinity;

  constructor(post: PostAll) {
    this.#post = post;
  }

  /**
   * Sends `message`, answers perhaps not before the end of this turn of the event loop. The first of several never waits,
   * whatever holds the event loop behind it. Throws where the message cannot be cloned.
   */
  send(message: FromInstance): void {
    const [ready, buffers] = withOwnBuffers(message);
    if (!canWait(ready) || this.#waiting.length === 0 && now() - this.#postedAt > GATHER_MS) {
      this.#flush();
      return this.#postNow(ready, buffers);
    }
    this.#waiting.push(snapshot(ready, buffers));
    this.#buffers.push(...buffers);
    if (this.#waiting.length === 1) setImmediate(() => this.#flush());
  }

  #flush(): void {
    if (this.#waiting.length === 0) return;
    const [messages, buffers] = [this.#waiting, this.#buffers];
    this.#waiting = [];
    this.#buffers = [];
    this.#postNow(messages, buffers);
  }

  #postNow(messages: FromInstance | readonly FromInstance[], buffers: ArrayBuffer[]): void {
    this.#post(messages, buffers);
    this.#postedAt = now();
  }
}

// Nothing else has only strings and tensors in it, which can be cloned whatever the function does.
function canWait(message: FromInstance): boolean {
  return message.type === "reply" && (message.reply.type === "delta" || message.reply.type === "tensors");
}

// The function may change its arrays meanwhile; those whose buffers move are copies already.
function snapshot(message: FromInstance, buffers: readonly ArrayBuffer[]): FromInstance {
  if (message.type !== "reply" || message.reply.type !== "tensors") return message;
  const output: Record<string, AnyTensor> = {};
  for (const [name, tensor] of Object.entries(message.reply.output)) {
    const moves = ArrayBuffer.isView(tensor.data) && buffers.includes(tensor.data.buffer as ArrayBuffer);
    output[name] = moves ? tensor : { ...tensor, data: tensor.data.slice() } as AnyTensor;
  }
  return { ...message, reply: { ...message.reply, output } };
}
