// What a connection receives, before Deno's http2 gets it.
import { Buffer } from "node:buffer";
import type net from "node:net";
import { FRAME, FrameReader } from "./frames.ts";
import { mayHaveGoawayFault } from "./http2_patch.ts";

const PREFACE_BYTES = 24;

/** Takes frames out of a stream of HTTP/2 bytes. */
export class FrameFilter {
  readonly #reader: FrameReader;

  /** `onFrame` says which by `false`. */
  constructor(onFrame: (type: number, streamId: number) => boolean | void) {
    this.#reader = new FrameReader(onFrame, PREFACE_BYTES);
  }

  /** The bytes without them; a header that is not complete waits for its rest. */
  push(bytes: Uint8Array): Uint8Array {
    const parts: Uint8Array[] = [];
    const before = this.#reader.pending;
    this.#reader.read(bytes, (part) => parts.push(part));
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    const isUnchanged = before === 0 && this.#reader.pending === 0 && length === bytes.length;
    return isUnchanged ? bytes : Buffer.concat(parts, length);
  }
}

/** What {@linkcode watchIncoming} tells. */
export interface IncomingListener {
  /** Called for all that is received. */
  readonly onBytes: () => void;
  /** Called when the client begins a stream. */
  readonly onHeaders: () => void;
  /**
   * Called when the client resets a stream: once Deno has handled the frame, nothing frees the bytes that the stream has
   * not sent any more.
   */
  readonly onReset: (streamId: number) => void;
}

/**
 * Looks through what `socket` receives, before anybody listens to it.
 *
 * GOAWAY is kept from Deno's http2 where it has the fault of http2_patch.ts: some of them, followed by bad frames, end
 * the process even with its close() delayed. A client that says GOAWAY closes its connection by itself.
 */
export function watchIncoming(socket: net.Socket, listener: IncomingListener): void {
  const pass = mayHaveGoawayFault(Deno.version.deno) ? withoutGoaway(listener) : asItIs(listener);
  const emit = socket.emit.bind(socket) as (event: string | symbol, ...args: unknown[]) => boolean;
  socket.emit = (event: string | symbol, ...args: unknown[]) => {
    if (event !== "data" || !(args[0] instanceof Uint8Array)) return emit(event, ...args);
    listener.onBytes();
    const bytes = pass(args[0]);
    return bytes.length > 0 ? emit("data", bytes) : true;
  };
}

function asItIs(listener: IncomingListener): (bytes: Uint8Array) => Uint8Array {
  const reader = new FrameReader((type, streamId) => tell(listener, type, streamId), PREFACE_BYTES);
  return (bytes) => {
    reader.read(bytes);
    return bytes;
  };
}

function withoutGoaway(listener: IncomingListener): (bytes: Uint8Array) => Uint8Array {
  const filter = new FrameFilter((type, streamId) => {
    tell(listener, type, streamId);
    return type !== FRAME.goaway;
  });
  return (bytes) => filter.push(bytes);
}

function tell({ onHeaders, onReset }: IncomingListener, type: number, streamId: number): void {
  if (type === FRAME.headers) onHeaders();
  else if (type === FRAME.rstStream) onReset(streamId);
}
