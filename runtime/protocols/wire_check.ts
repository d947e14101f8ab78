// Checks that bytes are a well-formed message before protobufjs decodes them: it accepts a string cut short by the
// message's end, a nested message that runs into its neighbour, a field of another wire type, and bad UTF-8.

/** What the check knows of a message type. */
export interface WireMessage {
  readonly name: string;
  readonly fields: ReadonlyMap<number, WireField>;
}

/** What the check knows of a field. */
export interface WireField {
  readonly name: string;
  readonly wireType: number;
  readonly repeated: boolean;
  /** A repeated scalar: packed (length-delimited) or one by one. */
  readonly packable: boolean;
  readonly text: boolean;
  readonly message: WireMessage | undefined;
}

const VARINT = 0, FIXED64 = 1, LENGTH = 2, GROUP = 3, GROUP_END = 4, FIXED32 = 5;
const MAX_DEPTH = 100;
// Each of these becomes an object, or a boxed number, of many times its size on the wire: a few megabytes of empty
// messages would fill the memory. Fixed-size numbers (a tensor's values) are not bounded but by the message's size.
const MAX_MESSAGES = 10_000;
const MAX_VARINTS = 10_000;
const utf8 = new TextDecoder("utf-8", { fatal: true });

/** What is wrong with the bytes; its message says where. */
export class WireError extends Error {
  override readonly name = "WireError";
}

/** Told where the elements of a field are: from `start` its tag, from `content` its value, up to `end`. */
export type OnSpan = (start: number, content: number, end: number) => void;

interface Cursor {
  readonly bytes: Uint8Array;
  readonly watched: number | undefined;
  readonly onSpan: OnSpan;
  readonly uncounted: WireMessage | undefined;
  at: number;
  /** Repeated messages and numbers so far, of all fields together. */
  messages: number;
  varints: number;
}

/** What else {@linkcode checkWire} does. */
export interface WireCheckOptions {
  /** The number of a field. */
  readonly watched?: number | undefined;
  /** Told where the fields of that number are, those of nested messages left out. */
  readonly onSpan?: OnSpan;
  /** A message type whose elements are not counted: whoever decodes it makes no object of each. */
  readonly uncounted?: WireMessage | undefined;
}

/** Throws a {@linkcode WireError} unless `bytes` are a well-formed message. */
export function checkWire(bytes: Uint8Array, type: WireMessage, options: WireCheckOptions = {}): void {
  const { watched, onSpan = () => {}, uncounted } = options;
  checkMessage({ bytes, watched, onSpan, uncounted, at: 0, messages: 0, varints: 0 }, bytes.length, type, 0);
}

function checkMessage(cursor: Cursor, end: number, type: WireMessage, depth: number): void {
  if (depth > MAX_DEPTH) throw new WireError(`messages are nested more than ${MAX_DEPTH} deep`);
  while (cursor.at < end) {
    const start = cursor.at;
    const tag = readVarint(cursor, end);
    const wireType = tag % 8;
    const number = (tag - wireType) / 8;
    const onSpan = depth === 0 && number === cursor.watched ? cursor.onSpan : undefined;
    if (number === 0 || number > 0x1fffffff) throw new WireError(`there is no field number ${number}`);
    const field = type.fields.get(number);
    const label = () => field ? `field "${field.name}" (${number})` : `field ${number}`;
    const isPacked = field?.packable === true && wireType === LENGTH;
    const isCounted = field?.repeated === true && type !== cursor.uncounted;
    if (field && field.wireType !== wireType && !isPacked) {
      throw new WireError(`${label()} has wire type ${wireType}, wanted ${field.wireType}`);
    }
    if (isCounted && wireType === VARINT) countVarints(cursor, 1, label);
    if (wireType !== LENGTH) {
      const content = cursor.at;
      skip(cursor, end, wireType, number, label, depth);
      onSpan?.(start, content, cursor.at);
      continue;
    }
    const length = readVarint(cursor, end);
    const fieldEnd = cursor.at + length;
    if (fieldEnd > end) throw new WireError(`${label()} of ${length} bytes is cut short by the end of its message`);
    onSpan?.(start, cursor.at, fieldEnd);
    if (isCounted) countElements(cursor, fieldEnd, field!, label, isPacked);
    if (field) checkContent(cursor, fieldEnd, field, label, isPacked, depth);
    cursor.at = fieldEnd;
  }
}

function checkContent(
  cursor: Cursor,
  end: number,
  field: WireField,
  label: () => string,
  packed: boolean,
  depth: number,
): void {
  if (field.message) return checkMessage(cursor, end, field.message, depth + 1);
  const content = cursor.bytes.subarray(cursor.at, end);
  if (field.text && content.some((byte) => byte > 127)) {
    try {
      utf8.decode(content);
    } catch {
      throw new WireError(`${label()} is not valid UTF-8`);
    }
  }
  if (!packed || content.length === 0) return;
  const size = field.wireType === FIXED32 ? 4 : field.wireType === FIXED64 ? 8 : 0;
  const whole = size > 0 ? content.length % size === 0 : content.at(-1)! < 128;
  if (!whole) throw new WireError(`${label()} ends within an element`);
}

function countElements(cursor: Cursor, end: number, field: WireField, label: () => string, packed: boolean): void {
  if (!packed && ++cursor.messages > MAX_MESSAGES) {
    throw new WireError(`${label()} makes more than ${MAX_MESSAGES} repeated elements`);
  }
  // A packed number takes a byte at least.
  if (packed && field.wireType === VARINT) countVarints(cursor, end - cursor.at, label);
}

function countVarints(cursor: Cursor, count: number, label: () => string): void {
  cursor.varints += count;
  if (cursor.varints > MAX_VARINTS) throw new WireError(`${label()} makes more than ${MAX_VARINTS} repeated numbers`);
}

function skip(cursor: Cursor, end: number, wireType: number, number: number, label: () => string, depth: number): void {
  switch (wireType) {
    case VARINT:
      readVarint(cursor, end);
      return;
    case FIXED32:
    case FIXED64:
      cursor.at += wireType === FIXED32 ? 4 : 8;
      if (cursor.at > end) throw new WireError(`${label()} is cut short by the end of its message`);
      return;
    case GROUP:
      skipGroup(cursor, end, number, depth + 1);
      return;
    default:
      throw new WireError(`${label()} has wire type ${wireType}`);
  }
}

function skipGroup(cursor: Cursor, end: number, group: number, depth: number): void {
  if (depth > MAX_DEPTH) throw new WireError(`groups are nested more than ${MAX_DEPTH} deep`);
  while (cursor.at < end) {
    const tag = readVarint(cursor, end);
    const wireType = tag % 8;
    const number = (tag - wireType) / 8;
    if (wireType === GROUP_END) {
      if (number === group) return;
      throw new WireError(`group ${group} ends as group ${number}`);
    }
    if (wireType === LENGTH) {
      const length = readVarint(cursor, end);
      cursor.at += length;
      if (cursor.at > end) throw new WireError(`field ${number} is cut short by the end of its message`);
    } else {
      skip(cursor, end, wireType, number, () => `field ${number}`, depth);
    }
  }
  throw new WireError(`group ${group} has no end`);
}

// Ten bytes at most; the value is exact up to 2^53, beyond that it is only used as "too large".
function readVarint(cursor: Cursor, end: number): number {
  let value = 0;
  for (let i = 0; i < 10; i++) {
    if (cursor.at >= end) throw new WireError("a number is cut short by the end of its message");
    const byte = cursor.bytes[cursor.at++]!;
    value += (byte & 127) * 2 ** (7 * i);
    if (byte < 128) return value;
  }
  throw new WireError("a number is longer than 10 bytes");
}
