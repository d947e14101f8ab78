// Sends the messages of one call no faster than the server's flow control takes them.
import process from "node:process";
import type { Rpc } from "./connection.ts";
import { SendWindow } from "./send_window.ts";
import type { BatchStats } from "./types.ts";

/** Where write callbacks do not tell that a message has left, frames do. */
export const COUNTS_FRAMES: boolean = process.versions["deno"] !== undefined;

/** gRPC's own bytes before each message. */
const PREFIX_BYTES = 5;
/** Of large messages fewer are in flight. */
const MAX_BYTES_IN_FLIGHT = 1024 * 1024;
/** A full window that waits longer than that shrinks. */
const HELD_MS = 10;

/** The sending side of one call. */
export class Sender {
  readonly #window = new SendWindow();
  /** Bytes of each message in flight, oldest first. */
  readonly #inFlight: number[] = [];
  #bytesInFlight = 0;
  #framed = 0;
  #rpc: Rpc<Uint8Array, unknown> | undefined;
  #onRoom: (() => void) | undefined;
  #sent = 0;
  #left = 0;
  #bytes = 0;
  #startedAt: number | undefined;
  #sendMs = 0;
  #waitedMs = 0;

  /** The call that it sends to. */
  attach(rpc: Rpc<Uint8Array, unknown>): void {
    this.#rpc = rpc;
    rpc.onEnd(() => this.#onRoom?.());
  }

  /** Whether the call takes no more. */
  get hasEnded(): boolean {
    return this.#rpc!.hasEnded;
  }

  /** What it did so far. */
  get stats(): BatchStats {
    return {
      sent: this.#sent,
      bytes: this.#bytes,
      inFlight: this.#inFlight.length,
      window: this.#window.size,
      increases: this.#window.increases,
      decreases: this.#window.decreases,
      sendMs: this.#sendMs,
      waitedMs: this.#waitedMs,
    };
  }

  /** Sends one message; resolves when the next may follow, or the call has ended. */
  async send(message: Uint8Array): Promise<void> {
    const rpc = this.#rpc!;
    this.#startedAt ??= performance.now();
    this.#sent++;
    this.#bytes += message.length;
    this.#inFlight.push(message.length + PREFIX_BYTES);
    this.#bytesInFlight += message.length + PREFIX_BYTES;
    if (COUNTS_FRAMES) rpc.write(message);
    else rpc.write(message, () => this.#leave());
    if (this.#isFull) await this.#room(rpc);
    this.#sendMs = performance.now() - this.#startedAt;
  }

  /** Told of the bytes of each DATA frame that has left. */
  readonly onDataSent = (bytes: number): void => {
    this.#framed += bytes;
    while (this.#inFlight.length > 0 && this.#framed >= this.#inFlight[0]!) {
      this.#framed -= this.#inFlight[0]!;
      this.#leave();
    }
  };

  get #isFull(): boolean {
    return this.#inFlight.length >= this.#window.size || this.#bytesInFlight >= MAX_BYTES_IN_FLIGHT;
  }

  #leave(): void {
    this.#left++;
    this.#bytesInFlight -= this.#inFlight.shift() ?? 0;
    if (!this.#isFull) this.#onRoom?.();
  }

  async #room(rpc: Rpc<Uint8Array, unknown>): Promise<void> {
    const isFirst = this.#left === 0; // it waits for the connection and the server's first window
    const began = performance.now();
    while (this.#isFull && !rpc.hasEnded) {
      await new Promise<void>((resolve) => this.#onRoom = resolve);
    }
    this.#onRoom = undefined;
    const waited = performance.now() - began;
    this.#waitedMs += waited;
    if (isFirst) return;
    if (waited > HELD_MS) this.#window.shrink();
    else this.#window.grow();
  }
}
