// Keeps a client's GOAWAY frames from Deno's http2 where it has the fault of http2_patch.ts: some of them, followed by
// bad frames, end the process even with its close() delayed. A client that says GOAWAY closes its connection by itself.
import { Buffer } from "node:buffer";
import type net from "node:net";

const PREFACE_BYTES = 24;
const HEADER_BYTES = 9;
const GOAWAY = 7;

/** Takes GOAWAY frames out of a stream of HTTP/2 bytes, which may be cut anywhere. */
export class GoawayFilter {
  #skip = PREFACE_BYTES;
  #drop = false;
  #header = Buffer.alloc(HEADER_BYTES);
  #headerBytes = 0;

  /** The bytes without GOAWAY frames; what may be the start of one waits for its rest. */
  push(bytes: Uint8Array): Buffer {
    const kept: Uint8Array[] = [];
    let at = 0;
    while (at < bytes.length) {
      if (this.#skip > 0) {
        const length = Math.min(this.#skip, bytes.length - at);
        if (!this.#drop) kept.push(bytes.subarray(at, at + length));
        this.#skip -= length;
        at += length;
        continue;
      }
      const length = Math.min(HEADER_BYTES - this.#headerBytes, bytes.length - at);
      this.#header.set(bytes.subarray(at, at + length), this.#headerBytes);
      this.#headerBytes += length;
      at += length;
      if (this.#headerBytes < HEADER_BYTES) break;
      this.#headerBytes = 0;
      this.#skip = this.#header.readUIntBE(0, 3);
      this.#drop = this.#header[3] === GOAWAY;
      if (!this.#drop) kept.push(Buffer.from(this.#header));
    }
    return Buffer.concat(kept);
  }
}

/** Filters what `socket` receives, before anybody listens to it. */
export function filterGoaway(socket: net.Socket): void {
  const filter = new GoawayFilter();
  const emit = socket.emit.bind(socket) as (event: string | symbol, ...args: unknown[]) => boolean;
  socket.emit = (event: string | symbol, ...args: unknown[]) => {
    if (event !== "data" || !(args[0] instanceof Uint8Array)) return emit(event, ...args);
    const bytes = filter.push(args[0]);
    return bytes.length > 0 ? emit("data", bytes) : true;
  };
}
