// What a connection writes within one turn of the event loop, as one write: Deno's http2 writes every frame, and every
// part of one, by itself, about nine times for a small call.
import { Buffer } from "node:buffer";
import type net from "node:net";
import { concatInto, freeBytes } from "../../core/bytes.ts";

type Done = (error?: Error | null) => void;

/** More than that does not wait for the end of the turn, in bytes. */
const MAX_GATHERED_BYTES = 65_536;

/** Has all that is written to `socket` within one turn of the event loop leave as one write. */
export function gatherWrites(socket: net.Socket): void {
  new WriteGatherer(socket);
}

class WriteGatherer {
  readonly #socket: net.Socket;
  readonly #write: net.Socket["write"];
  #chunks: Uint8Array[] = [];
  #callbacks: Done[] = [];
  #bytes = 0;
  #isArmed = false;
  /** Somebody waits for "drain". */
  #hasRefused = false;

  constructor(socket: net.Socket) {
    this.#socket = socket;
    this.#write = socket.write.bind(socket);
    const end = socket.end.bind(socket) as (...args: unknown[]) => net.Socket;
    const destroy = socket.destroy.bind(socket);
    socket.write = (...args: unknown[]) => this.#gather(...args);
    socket.end = (...args: unknown[]) => {
      this.#flush();
      return end(...args);
    };
    socket.destroy = (error) => {
      this.#flush();
      return destroy(error);
    };
  }

  #flush(): void {
    if (this.#chunks.length === 0) return;
    const bytes = this.#chunks.length === 1 ? this.#chunks[0]! : joinInSpare(this.#chunks, this.#bytes);
    const callbacks = this.#callbacks;
    this.#chunks = [];
    this.#callbacks = [];
    this.#bytes = 0;
    const hasRoom = this.#write(bytes, (error) => {
      giveBack(bytes);
      callbacks.forEach((done) => done(error));
    });
    // The socket has sent on meanwhile: nothing else would tell those who wait.
    if (hasRoom && this.#hasRefused) queueMicrotask(() => this.#socket.emit("drain"));
    this.#hasRefused = false;
  }

  #gather(...args: unknown[]): boolean {
    const [chunk, encoding] = args;
    const done = args.find((arg) => typeof arg === "function") as Done | undefined;
    this.#chunks.push(chunk instanceof Uint8Array ? chunk : Buffer.from(chunk as string, encoding as BufferEncoding));
    if (done) this.#callbacks.push(done);
    this.#bytes += this.#chunks.at(-1)!.length;
    if (this.#bytes >= MAX_GATHERED_BYTES) this.#flush();
    else if (!this.#isArmed) this.#arm();
    const hasRoom = this.#socket.writableLength + this.#bytes < this.#socket.writableHighWaterMark;
    if (!hasRoom && this.#bytes > 0) this.#hasRefused = true;
    return hasRoom;
  }

  #arm(): void {
    this.#isArmed = true;
    setImmediate(() => {
      this.#isArmed = false;
      this.#flush();
    });
  }
}

/** What most gathered writes fit into, in bytes: the threshold and one frame. */
const SPARE_BYTES = MAX_GATHERED_BYTES + 16_384 + 9;
/** Below that Node's own pool serves. */
const MIN_SPARE_BYTES = Buffer.poolSize / 2;
const MAX_SPARES = 16;

// Buffers that the kernel has taken over, of all connections: in fresh ones the writes of a 602 KB tensor cost 150 page
// faults, and a sixteenth of a garbage collection.
const spares: ArrayBuffer[] = [];

function joinInSpare(chunks: readonly Uint8Array[], length: number): Uint8Array {
  if (length < MIN_SPARE_BYTES || length > SPARE_BYTES) return Buffer.concat(chunks, length);
  const buffer = spares.pop() ?? new ArrayBuffer(SPARE_BYTES);
  const joined = concatInto(Buffer.from(buffer, 0, length), chunks); // what an earlier write left behind it stays there
  chunks.forEach(freeBytes);
  return joined;
}

function giveBack({ buffer }: Uint8Array): void {
  if (buffer.byteLength === SPARE_BYTES && spares.length < MAX_SPARES) spares.push(buffer as ArrayBuffer);
}
