// Reads the fields of protobuf messages that the wire check has found well formed, and writes fields. Bytes stay where
// they are, and 64-bit numbers stay exact: neither is so with protobufjs.
import { concatBytes } from "../../core/bytes.ts";
import { withField } from "../parts.ts";

const VARINT = 0, FIXED64 = 1, LENGTH = 2, GROUP = 3, GROUP_END = 4;

/** One field of a message. */
export interface WireField {
  readonly number: number;
  readonly wireType: number;
  /** Its value: a varint's bytes, or what its length says. */
  readonly content: Uint8Array;
  /** Bytes of its tag and length, right before the content. */
  readonly headerBytes: number;
}

/** The fields of a well-formed message, in their order. */
export function* readFields(message: Uint8Array): Generator<WireField, void, undefined> {
  const cursor = { message, at: 0 };
  while (cursor.at < message.length) yield readField(cursor);
}

interface Cursor {
  readonly message: Uint8Array;
  at: number;
}

function readField(cursor: Cursor): WireField {
  const { message } = cursor;
  const start = cursor.at;
  const tag = readNumber(cursor);
  const wireType = tag % 8;
  const length = wireType === LENGTH ? readNumber(cursor) : 0;
  const content = cursor.at;
  if (wireType === LENGTH) cursor.at += length;
  else if (wireType === VARINT) { while (message[cursor.at++]! > 127); }
  else if (wireType === GROUP) { while (readField(cursor).wireType !== GROUP_END); }
  else if (wireType !== GROUP_END) cursor.at += wireType === FIXED64 ? 8 : 4;
  return {
    number: Math.floor(tag / 8),
    wireType,
    content: message.subarray(content, cursor.at),
    headerBytes: content - start,
  };
}

function readNumber(cursor: Cursor): number {
  let value = 0;
  for (let factor = 1;; factor *= 128) {
    const byte = cursor.message[cursor.at++]!;
    value += (byte & 127) * factor;
    if (byte < 128) return value;
  }
}

/** The value of a varint. */
export function varintOf(content: Uint8Array): bigint {
  let value = 0n;
  for (let i = content.length - 1; i >= 0; i--) value = value << 7n | BigInt(content[i]! & 127);
  return BigInt.asUintN(64, value);
}

/** The value of a varint that is an int64. */
export function signedVarintOf(content: Uint8Array): bigint {
  return BigInt.asIntN(64, varintOf(content));
}

/** The varints of a packed field. */
export function* splitVarints(packed: Uint8Array): Generator<Uint8Array, void, undefined> {
  for (let start = 0, at = 0; at < packed.length; start = at) {
    while (packed[at++]! > 127);
    yield packed.subarray(start, at);
  }
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const encoder = new TextEncoder();

/** The value of a string. */
export function textOf(content: Uint8Array): string {
  return decoder.decode(content);
}

/** A field of text; none where it is empty. */
export function textField(number: number, text: string): readonly Uint8Array[] {
  return text === "" ? [] : withField([], number, [encoder.encode(text)]);
}

/** A field of numbers, packed; none where there are none. They are safe integers. */
export function packedField(number: number, values: readonly number[]): readonly Uint8Array[] {
  return values.length === 0 ? [] : withField([], number, [concatBytes(values.map(encodeVarint))]);
}

/** An integer from 0 to 2^53 as a varint. */
function encodeVarint(value: number): Uint8Array {
  const bytes: number[] = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push(value % 128 + 128);
  return Uint8Array.of(...bytes, value);
}
