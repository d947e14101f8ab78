// Messages as bytes, for an instance in another process. Tensors' bytes stand apart: they are written from where they
// are, and read into where they stay.
//
//   u32 header length | u32 number of buffers | u32 length of each buffer | header | buffers
//
// The header is the message, in which a tensor's `data` is the number of its buffer: in V8's format for structured
// clones, so that it may hold whatever a worker's may, or as JSON where that can say the same, in a third of the time.
import { Buffer } from "node:buffer";
import { deserialize, serialize } from "node:v8";
import { ARRAY_TYPES, type DType, isDataOf, isDType, isFixed } from "../core/dtype.ts";
import { ModelError } from "../core/error.ts";
import { type AnyTensor, bytesOf, elementCount, type NamedTensors } from "../core/tensor.ts";
import type { FromInstance, ToInstance } from "./messages.ts";

/** Where frames are read from: `Deno.Conn` is one. */
export interface FrameSource {
  read(into: Uint8Array): Promise<number | null>;
}

/** Where they are written to. */
export interface FrameSink {
  write(bytes: Uint8Array): Promise<number>;
}

type Message = ToInstance | FromInstance;

/** The most bytes of one message. */
export const MAX_FRAME_BYTES = 1024 ** 3;
/** The most buffers of one message. */
export const MAX_FRAME_BUFFERS = 2 ** 20;

/** Pieces below it are gathered into one write: a system call costs more than the copy. */
const SMALL_BYTES = 16 * 1024;
/** What is read, and gathered, at most at once. */
const BLOCK_BYTES = 64 * 1024;
const PREFIX_BYTES = 8;

/** The pieces of a message's frame. `copies`: its sender may go on changing the tensors. */
export function encodeFrame(message: Message, { copies }: { readonly copies: boolean }): Uint8Array[] {
  const buffers: Uint8Array[] = [];
  const header = encodeHeader(mapTensors(message, (tensor) => takeOut(tensor, buffers, copies)));
  const headBytes = PREFIX_BYTES + 4 * buffers.length + header.byteLength;
  const total = buffers.reduce((sum, { byteLength }) => sum + byteLength, headBytes);
  if (total > MAX_FRAME_BYTES || buffers.length > MAX_FRAME_BUFFERS) {
    throw new ModelError(
      "resource_exhausted",
      `Cannot pass ${total} bytes in ${buffers.length} buffers between processes: ${MAX_FRAME_BYTES} bytes in ${MAX_FRAME_BUFFERS} are the most`,
    );
  }
  const head = new Uint8Array(headBytes);
  const view = new DataView(head.buffer);
  view.setUint32(0, header.byteLength, true);
  view.setUint32(4, buffers.length, true);
  buffers.forEach(({ byteLength }, i) => view.setUint32(PREFIX_BYTES + 4 * i, byteLength, true));
  head.set(header, headBytes - header.byteLength);
  return [head, ...buffers];
}

// V8's format begins with this byte, JSON of an object with "{".
const V8_TAG = 0xff;

function encodeHeader(message: Message): Uint8Array {
  return isPlain(message) ? Buffer.from(JSON.stringify(message)) : serialize(message);
}

// Whether the message comes out of JSON as it went in, as far as that can be told quickly.
function isPlain(message: Message): boolean {
  switch (message.type) {
    case "call": {
      const { call } = message;
      return (call.kind === "predict" || call.kind === "stream") && call.values === undefined &&
        Object.values(call.params).every(isPlainValue) && isPlainValue(call.deadline ?? 0) && holdsNoBytes(call.input);
    }
    case "reply":
      return message.reply.type === "delta" || message.reply.type === "tensors" && holdsNoBytes(message.reply.output);
    case "end":
    case "done":
      return message.error === undefined;
    case "credit":
    case "settled":
    case "ping":
      return true;
    default:
      return false;
  }
}

function isPlainValue(value: unknown): boolean {
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0);
  return typeof value === "string" || typeof value === "boolean";
}

function holdsNoBytes(tensors: NamedTensors): boolean {
  return Object.values(tensors).every(({ dtype }) => dtype !== "bytes");
}

function takeOut(tensor: AnyTensor, buffers: Uint8Array[], copies: boolean): AnyTensor {
  const { dtype, data } = tensor;
  if (dtype === "string") return tensor;
  const put = (bytes: Uint8Array) => {
    // Small ones are copied by the writer anyhow, but later.
    return buffers.push(copies || !(bytes.buffer instanceof ArrayBuffer) ? bytes.slice() : bytes) - 1;
  };
  if (dtype !== "bytes") return { ...tensor, data: put(bytesOf(data)) } as unknown as AnyTensor;
  if (!data.some(({ byteLength }) => byteLength >= SMALL_BYTES)) return tensor;
  const elements = data.map((bytes) => bytes.byteLength >= SMALL_BYTES ? put(bytes) : bytes);
  return { ...tensor, data: elements } as unknown as AnyTensor;
}

/** The message of a header and its buffers; throws where it is none. The bytes may be anybody's. */
function decodeFrame(header: Buffer<ArrayBuffer>, buffers: readonly ArrayBuffer[]): unknown {
  const message: unknown = header[0] === V8_TAG ? deserialize(header) : JSON.parse(header.toString());
  return mapTensors(message as Message, (tensor) => putBack(tensor, buffers, header.byteLength));
}

function putBack(tensor: AnyTensor, buffers: readonly ArrayBuffer[], headerBytes: number): AnyTensor {
  const { dtype, shape } = tensor;
  // Few bytes can say that an array has four billion holes.
  for (const list of [shape, tensor.data]) {
    if (Array.isArray(list) && list.length > headerBytes) throw new TypeError("Cannot read a tensor with holes");
  }
  const data = dataOf(dtype, tensor.data, buffers);
  const isShape = Array.isArray(shape) && shape.every((dim) => Number.isSafeInteger(dim) && dim >= 0);
  if (!isDataOf(dtype, data) || !isShape || elementCount(shape) !== data.length) {
    throw new TypeError(`Cannot read a tensor of dtype "${dtype}" and shape [${shape}]: its data is something else`);
  }
  return { ...tensor, data } as AnyTensor;
}

function dataOf(dtype: DType, data: unknown, buffers: readonly ArrayBuffer[]): AnyTensor["data"] {
  if (Array.isArray(data)) return data.map((part) => typeof part === "number" ? new Uint8Array(buffers[part]!) : part);
  const buffer = buffers[data as number];
  if (!isDType(dtype) || !isFixed(dtype) || !buffer) throw new TypeError("Cannot read a tensor without its data");
  const { BYTES_PER_ELEMENT: size } = ARRAY_TYPES[dtype];
  return new ARRAY_TYPES[dtype](buffer, 0, buffer.byteLength / size); // throws where it is no multiple
}

// The places where a message holds tensors.
function mapTensors(message: Message, map: (tensor: AnyTensor) => AnyTensor): Message {
  const mapped = (tensors: NamedTensors) =>
    Object.fromEntries(Object.entries(tensors).map(([name, tensor]) => [name, map(tensor)]));
  if (message.type === "reply" && message.reply.type === "tensors") {
    return { ...message, reply: { ...message.reply, output: mapped(message.reply.output) } };
  }
  if (message.type !== "call" || message.call.kind === "chat") return message;
  const { call } = message;
  if (call.kind !== "batch") return { ...message, call: { ...call, input: mapped(call.input) } };
  return { ...message, call: { ...call, items: call.items.map((item) => ({ ...item, input: mapped(item.input) })) } };
}

/** Writes messages one after the other; what is posted in one turn is gathered. */
export class FrameWriter {
  readonly #sink: FrameSink;
  readonly #copies: boolean;
  readonly #onBroken: (error: unknown) => void;
  #queue: Uint8Array[] = [];
  #isWriting = false;
  #isBroken = false;

  /** `copies`: a message's tensors may change after `write`; `onBroken` is told once that nothing more can be written. */
  constructor(sink: FrameSink, copies: boolean, onBroken: (error: unknown) => void) {
    this.#sink = sink;
    this.#copies = copies;
    this.#onBroken = onBroken;
  }

  /** Throws where the message cannot be encoded. */
  write(message: Message): void {
    if (this.#isBroken) return;
    for (const piece of encodeFrame(message, { copies: this.#copies })) this.#queue.push(piece);
    if (this.#isWriting) return;
    this.#isWriting = true;
    queueMicrotask(() => this.#flush());
  }

  async #flush(): Promise<void> {
    try {
      while (this.#queue.length > 0) {
        for (const piece of gather(this.#queue.splice(0))) await writeAll(this.#sink, piece);
      }
    } catch (error) {
      this.#isBroken = true;
      this.#queue = [];
      this.#onBroken(error);
    } finally {
      this.#isWriting = false;
    }
  }
}

/** Writes all of `bytes`. */
export async function writeAll(sink: FrameSink, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.byteLength;) written += await sink.write(bytes.subarray(written));
}

function* gather(pieces: readonly Uint8Array[]): Generator<Uint8Array> {
  let small: Uint8Array[] = [];
  let bytes = 0;
  for (const piece of pieces) {
    const isSmall = piece.byteLength < SMALL_BYTES;
    if (small.length > 0 && (!isSmall || bytes + piece.byteLength > BLOCK_BYTES)) {
      yield joined(small, bytes);
      small = [];
      bytes = 0;
    }
    if (isSmall) {
      small.push(piece);
      bytes += piece.byteLength;
    } else {
      yield piece;
    }
  }
  if (small.length > 0) yield joined(small, bytes);
}

function joined(pieces: readonly Uint8Array[], bytes: number): Uint8Array {
  if (pieces.length === 1) return pieces[0]!;
  const all = new Uint8Array(bytes);
  let offset = 0;
  for (const piece of pieces) {
    all.set(piece, offset);
    offset += piece.byteLength;
  }
  return all;
}

/**
 * Hands each message to `onMessage` until the source ends; one that is cut short then is left out. Rejects for a frame
 * that is too long or malformed, and with what `onMessage` throws.
 */
export async function readFrames(source: FrameSource, onMessage: (message: unknown) => void): Promise<void> {
  const reader = new BlockReader(source);
  try {
    for (;;) onMessage(await readFrame(reader));
  } catch (error) {
    if (!(error instanceof SourceEnd)) throw error;
  }
}

/** Each message when it is asked for; else as {@linkcode readFrames}, which is faster. */
export async function* framesOf(source: FrameSource): AsyncGenerator<unknown, void, undefined> {
  const reader = new BlockReader(source);
  try {
    for (;;) yield await readFrame(reader);
  } catch (error) {
    if (!(error instanceof SourceEnd)) throw error;
  }
}

async function readFrame(reader: BlockReader): Promise<unknown> {
  await reader.fill(PREFIX_BYTES);
  const [headerBytes, count] = new Uint32Array(await reader.take(PREFIX_BYTES)) as unknown as [number, number];
  checkLimits(headerBytes, count);
  const lengths = new Uint32Array(await reader.take(4 * count));
  checkLimits(lengths.reduce((sum, length) => sum + length, headerBytes), count);
  const header = await reader.take(headerBytes);
  const buffers: ArrayBuffer[] = [];
  for (const length of lengths) buffers.push(await reader.take(length));
  return decodeFrame(Buffer.from(header), buffers);
}

function checkLimits(bytes: number, count: number): void {
  if (bytes <= MAX_FRAME_BYTES && count <= MAX_FRAME_BUFFERS) return;
  throw new RangeError(`Cannot read a message of ${bytes} bytes in ${count} buffers`);
}

class SourceEnd extends Error {}

/** Small parts come out of a block; large ones are read to where they stay, but for what the block has of them. */
class BlockReader {
  readonly #source: FrameSource;
  readonly #block = new Uint8Array(BLOCK_BYTES);
  #start = 0;
  #end = 0;

  constructor(source: FrameSource) {
    this.#source = source;
  }

  /** Makes the block hold `bytes` at least, a few; throws `SourceEnd`. */
  async fill(bytes: number): Promise<void> {
    if (this.#end - this.#start >= bytes) return;
    this.#block.copyWithin(0, this.#start, this.#end);
    this.#end -= this.#start;
    this.#start = 0;
    while (this.#end < bytes) {
      const read = await this.#source.read(this.#block.subarray(this.#end));
      if (read === null) throw new SourceEnd();
      this.#end += read;
    }
  }

  /** So many bytes, in a buffer of their own; throws `SourceEnd`. */
  async take(bytes: number): Promise<ArrayBuffer> {
    const taken = new Uint8Array(bytes);
    let filled = Math.min(bytes, this.#end - this.#start);
    taken.set(this.#block.subarray(this.#start, this.#start + filled));
    this.#start += filled;
    while (filled < bytes) {
      const read = await this.#source.read(taken.subarray(filled));
      if (read === null) throw new SourceEnd();
      filled += read;
    }
    return taken.buffer;
  }
}
