// What has really left for each stream of a connection. Deno's http2 calls a write's callback, and reports room, as if
// the client's flow control window did not exist: a client that takes nothing would fill the server's memory.
import type net from "node:net";

/** The bytes of one stream that have left. */
export interface StreamFlow {
  /** Bytes of DATA frames, as the client's window counts them. */
  sent: number;
  /** Called after more has left. */
  onSent: (() => void) | undefined;
  /** Called when the connection is gone. */
  onClosed: (() => void) | undefined;
}

const HEADER_BYTES = 9;
const DATA = 0;

/** Reads the frame headers of what a connection writes, and counts its DATA frames by stream. */
export class FlowMeter {
  readonly #streams = new Map<number, StreamFlow>();
  readonly #header = new Uint8Array(HEADER_BYTES);
  #headerBytes = 0;
  #payloadLeft = 0;

  /** Follows the frames that `socket` writes from now on. */
  constructor(socket: net.Socket) {
    const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
    socket.write = (...args: unknown[]) => {
      if (args[0] instanceof Uint8Array) this.observe(args[0]);
      return write(...args);
    };
  }

  /** Counts for a stream, until `untrack`. */
  track(streamId: number): StreamFlow {
    const flow: StreamFlow = { sent: 0, onSent: undefined, onClosed: undefined };
    this.#streams.set(streamId, flow);
    return flow;
  }

  /** Forgets a stream. */
  untrack(streamId: number): void {
    this.#streams.delete(streamId);
  }

  /** The connection is gone. Deno's http2 does not tell of it where a stream waits for its window. */
  close(): void {
    for (const flow of [...this.#streams.values()]) flow.onClosed?.();
    this.#streams.clear();
  }

  /** Takes the next bytes of the connection; frames may be cut anywhere. */
  observe(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      if (this.#payloadLeft > 0) {
        const skipped = Math.min(this.#payloadLeft, bytes.length - at);
        this.#payloadLeft -= skipped;
        at += skipped;
        continue;
      }
      const taken = Math.min(HEADER_BYTES - this.#headerBytes, bytes.length - at);
      this.#header.set(bytes.subarray(at, at + taken), this.#headerBytes);
      this.#headerBytes += taken;
      at += taken;
      if (this.#headerBytes === HEADER_BYTES) this.#onHeader();
    }
  }

  #onHeader(): void {
    const view = new DataView(this.#header.buffer);
    const length = view.getUint32(0) >>> 8;
    this.#headerBytes = 0;
    this.#payloadLeft = length;
    if (view.getUint8(3) !== DATA) return;
    const flow = this.#streams.get(view.getUint32(5) & 0x7fffffff);
    if (!flow) return;
    flow.sent += length;
    flow.onSent?.();
  }
}
