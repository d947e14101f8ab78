// Messages with one large field: its bytes are viewed in place and written once, while protobufjs copies bytes and makes
// a number object of every packed float. Below a size protobufjs is the faster one.
import { concatBytes, lengthOf } from "../core/bytes.ts";
import { viewBytes } from "../core/tensor.ts";

/** Messages with a field from this size on are worth it, in bytes. */
export const MIN_LARGE_BYTES = 1024;

/** Where one occurrence of a field is in its message: the start of its tag, the start of its value, its end. */
export type Span = readonly [start: number, content: number, end: number];

/** A message in two: the floats of one field, and the rest of it, encoded. */
export interface CutMessage {
  readonly floats: Float32Array;
  readonly rest: Uint8Array;
}

/** Cuts a field of floats out of a message that is well formed; `spans` say where its runs are, in order. */
export function cutFloats(bytes: Uint8Array, spans: readonly Span[]): CutMessage {
  const rest: Uint8Array[] = [];
  let at = 0;
  for (const [start, , end] of spans) {
    rest.push(bytes.subarray(at, start));
    at = end;
  }
  rest.push(bytes.subarray(at));
  const runs = spans.map(([, content, end]) => bytes.subarray(content, end));
  return { floats: viewBytes("float32", join(runs)), rest: join(rest) };
}

/** The parts of a message with a length-delimited field besides what `rest` encodes. */
export function withField(rest: readonly Uint8Array[], number: number, content: readonly Uint8Array[]): Uint8Array[] {
  return [...rest, fieldHeader(number, lengthOf(content)), ...content];
}

// The tag and the length, as varints.
function fieldHeader(number: number, length: number): Uint8Array {
  const bytes: number[] = [];
  for (let value of [number * 8 + 2, length]) {
    for (; value > 127; value = Math.floor(value / 128)) bytes.push(value % 128 + 128);
    bytes.push(value);
  }
  return Uint8Array.from(bytes);
}

/** Encoded parts as one message, by protobuf's merge rule; a single one as it is. */
export function join(parts: readonly Uint8Array[]): Uint8Array {
  return parts.length === 1 ? parts[0]! : concatBytes(parts);
}
