// The frames of one direction of an HTTP/2 connection, read from its bytes, which may be cut anywhere.

const HEADER_BYTES = 9;

/** The types of frames that this server cares about. */
export const FRAME = { data: 0, headers: 1, rstStream: 3, goaway: 7 } as const;

/** GOAWAY without an error and with the last stream there can be: new calls go elsewhere, those on their way are taken. */
export const SHUTDOWN_NOTICE: Uint8Array = new Uint8Array(
  [0, 0, 8, FRAME.goaway, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0],
);

/** Told of every frame once its header is complete; `false` takes the frame out. */
export type OnFrame = (type: number, streamId: number, length: number) => boolean | void;

/** Reads frame headers. */
export class FrameReader {
  readonly #onFrame: OnFrame;
  readonly #header = new Uint8Array(HEADER_BYTES);
  #headerBytes = 0;
  #payloadLeft: number;
  #keep = true;

  /** `prefaceBytes` come before the first frame. */
  constructor(onFrame: OnFrame, prefaceBytes = 0) {
    this.#onFrame = onFrame;
    this.#payloadLeft = prefaceBytes;
  }

  /** Bytes of a header whose rest has not come yet. */
  get pending(): number {
    return this.#headerBytes;
  }

  /** Whether the next byte begins a frame. */
  get isBetweenFrames(): boolean {
    return this.#headerBytes === 0 && this.#payloadLeft === 0;
  }

  /** Takes the next bytes; hands on what is not taken out, headers only when they are complete. */
  read(bytes: Uint8Array, handOn?: (part: Uint8Array) => void): void {
    let at = 0;
    while (at < bytes.length) {
      if (this.#payloadLeft > 0) {
        const end = at + Math.min(this.#payloadLeft, bytes.length - at);
        if (this.#keep) handOn?.(bytes.subarray(at, end));
        this.#payloadLeft -= end - at;
        at = end;
        continue;
      }
      const taken = Math.min(HEADER_BYTES - this.#headerBytes, bytes.length - at);
      if (taken === HEADER_BYTES) {
        this.#begin(bytes, at);
        if (this.#keep) handOn?.(bytes.subarray(at, at + HEADER_BYTES));
      } else {
        this.#header.set(bytes.subarray(at, at + taken), this.#headerBytes);
        this.#headerBytes += taken;
        if (this.#headerBytes < HEADER_BYTES) return;
        this.#headerBytes = 0;
        this.#begin(this.#header, 0);
        if (this.#keep) handOn?.(this.#header.slice());
      }
      at += taken;
    }
  }

  // Reads the header at `at`. By hand: a DataView for each frame would show in a profile.
  #begin(bytes: Uint8Array, at: number): void {
    this.#payloadLeft = uint24(bytes, at);
    const streamId = (bytes[at + 5]! & 0x7f) << 24 | uint24(bytes, at + 6);
    this.#keep = this.#onFrame(bytes[at + 3]!, streamId, this.#payloadLeft) !== false;
  }
}

function uint24(bytes: Uint8Array, at: number): number {
  return bytes[at]! << 16 | bytes[at + 1]! << 8 | bytes[at + 2]!;
}
