// What has really left for each stream of a connection. Deno's http2 calls a write's callback, and reports room, as if
// the client's flow control window did not exist: a client that takes nothing would fill the server's memory.
import type net from "node:net";
import { FRAME, FrameReader } from "./frames.ts";

/** The bytes of one stream that have left. */
export interface StreamFlow {
  /** Bytes of DATA frames, as the client's window counts them. */
  sent: number;
  /** Those of them that wait in a full socket, and do not count as sent yet. */
  held: number;
  /** Called after more has left. */
  onSent: (() => void) | undefined;
  /** Called when the client has reset the stream, or the connection is gone. */
  onClosed: (() => void) | undefined;
}

/** Bytes that wait in a connection's socket, which takes all it is given, before its streams have to wait as well. */
const MAX_IN_SOCKET_BYTES = 1024 * 1024;

type Write = (...args: unknown[]) => boolean;

/** Reads the frame headers of what a connection writes, and counts its DATA frames by stream. */
export class FlowMeter {
  readonly #socket: net.Socket;
  readonly #streams = new Map<number, StreamFlow>();
  readonly #reader = new FrameReader((...frame) => this.#onFrame(...frame));
  readonly #write: Write;
  #hasBegun = false;
  #inserted: Uint8Array | undefined;

  /** Follows the frames that `socket` writes from now on. */
  constructor(socket: net.Socket) {
    this.#socket = socket;
    this.#write = socket.write.bind(socket) as Write;
    socket.write = (...args: unknown[]) => {
      if (args[0] instanceof Uint8Array) this.observe(args[0]);
      const hasRoom = this.#write(...args);
      this.#insertNow();
      return hasRoom;
    };
  }

  /** Writes a frame that Deno's http2 does not know of, after those that it has begun; never as the first. */
  insert(frame: Uint8Array): void {
    this.#inserted = frame;
    this.#insertNow();
  }

  #insertNow(): void {
    if (!this.#inserted || !this.#hasBegun || !this.#reader.isBetweenFrames) return;
    this.#write(this.#inserted);
    this.#inserted = undefined;
  }

  /** Counts for a stream, until `untrack`. */
  track(streamId: number): StreamFlow {
    const flow: StreamFlow = { sent: 0, held: 0, onSent: undefined, onClosed: undefined };
    this.#streams.set(streamId, flow);
    return flow;
  }

  /** Forgets a stream. */
  untrack(streamId: number): void {
    this.#streams.delete(streamId);
  }

  /** The socket has handed all it had to the network. */
  drained(): void {
    for (const flow of [...this.#streams.values()]) {
      if (flow.held === 0) continue;
      flow.sent += flow.held;
      flow.held = 0;
      flow.onSent?.();
    }
  }

  /** The client resets a stream. */
  reset(streamId: number): void {
    this.#streams.get(streamId)?.onClosed?.();
  }

  /** The connection is gone. Deno's http2 does not tell of it where a stream waits for its window. */
  close(): void {
    for (const flow of [...this.#streams.values()]) flow.onClosed?.();
    this.#streams.clear();
  }

  /** Takes the next bytes of the connection. */
  observe(bytes: Uint8Array): void {
    this.#hasBegun = true;
    this.#reader.read(bytes);
  }

  #onFrame(type: number, streamId: number, length: number): void {
    const flow = type === FRAME.data ? this.#streams.get(streamId) : undefined;
    if (!flow) return;
    if (this.#socket.writableLength > MAX_IN_SOCKET_BYTES) {
      flow.held += length;
      return;
    }
    flow.sent += length;
    flow.onSent?.();
  }
}
