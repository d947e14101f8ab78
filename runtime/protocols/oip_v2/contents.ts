// inference.InferTensorContents: the elements of a tensor as protobuf's numbers. They go straight into the tensor's
// array and back, so that 64-bit integers stay exact and millions of numbers make no objects.
import { concatBytes } from "../../core/bytes.ts";
import { checkCount } from "./count.ts";
import { ARRAY_TYPES, type DataTypeMap, type DType, type FixedDType, isFixed } from "../../core/dtype.ts";
import { ModelError } from "../../core/error.ts";
import { type AnyTensor, bytesOf, viewBytes } from "../../core/tensor.ts";
import { withField } from "../parts.ts";
import { datatypeOf } from "./datatype.ts";
import { decodeText, encodeTexts, MAX_TEXTS } from "./texts.ts";
import { readFields } from "./wire.ts";

type TypableDType = Exclude<DType, "float16" | "bfloat16">;

const FIELDS: Readonly<Record<TypableDType, number>> = {
  bool: 1,
  int8: 2,
  int16: 2,
  int32: 2,
  int64: 3,
  uint8: 4,
  uint16: 4,
  uint32: 4,
  uint64: 5,
  float32: 6,
  float64: 7,
  string: 8,
  bytes: 8,
};
const NAMES = [
  ...["", "bool_contents", "int_contents", "int64_contents", "uint_contents", "uint64_contents"],
  ...["fp32_contents", "fp64_contents", "bytes_contents"],
];
/** A number of one byte may take eight in memory. */
const MAX_NUMBERS = 2 ** 24;

/** Whether elements of a dtype have a field there. */
export function isTypable(dtype: DType): dtype is TypableDType {
  return dtype in FIELDS;
}

/** Reads the `count` elements of a message that is well formed. */
export function decodeContents(message: Uint8Array, dtype: DType, count: number, label: string): AnyTensor["data"] {
  if (!isTypable(dtype)) throw unreadable(label, `"${datatypeOf(dtype)}" has no typed contents, send it raw`);
  const runs = runsOf(message, dtype, label);
  if (!isFixed(dtype)) {
    checkCount(label, runs.length, count, MAX_TEXTS);
    return dtype === "bytes" ? runs.map((run) => new Uint8Array(run)) : runs.map((run, i) => decodeText(run, i, label));
  }
  const bytes = runs.length === 1 ? runs[0]! : concatBytes(runs);
  if (dtype === "float32" || dtype === "float64") {
    checkCount(label, bytes.length / ARRAY_TYPES[dtype].BYTES_PER_ELEMENT, count);
    return viewBytes(dtype, concatBytes([bytes])); // what is before them is not theirs
  }
  checkCount(label, countVarints(bytes), count, MAX_NUMBERS);
  return decodeVarints(bytes, dtype, count, label);
}

// The values of the dtype's field, packed or one by one. Another field's would be lost.
function runsOf(message: Uint8Array, dtype: TypableDType, label: string): Uint8Array[] {
  const wanted = FIELDS[dtype];
  const runs: Uint8Array[] = [];
  for (const { number, content, wireType } of readFields(message)) {
    if (number === wanted) runs.push(content);
    else if (NAMES[number] && (wireType !== 2 || content.length > 0)) {
      const field = `those of "${datatypeOf(dtype)}" go into ${NAMES[wanted]}`;
      throw unreadable(label, `its elements are in ${NAMES[number]}, ${field}`);
    }
  }
  return runs;
}

function unreadable(label: string, why: string): ModelError {
  return new ModelError("invalid_argument", `Cannot read ${label}: ${why}`);
}

function countVarints(bytes: Uint8Array): number {
  let count = 0;
  for (let i = 0; i < bytes.length; i++) if (bytes[i]! < 128) count++;
  return count;
}

type IntegerDType = Exclude<FixedDType & TypableDType, "float32" | "float64">;

function decodeVarints(bytes: Uint8Array, dtype: IntegerDType, count: number, label: string): AnyTensor["data"] {
  const array = new ARRAY_TYPES[dtype](count);
  const halves = array.BYTES_PER_ELEMENT === 8 ? new Uint32Array(array.buffer) : undefined;
  const signed = dtype.startsWith("int");
  let at = 0;
  for (let i = 0; i < count; i++) {
    let low = 0;
    let high = 0;
    for (let shift = 0;; shift += 7) {
      const byte = bytes[at++]!;
      if (shift < 28) low |= (byte & 127) << shift;
      else if (shift === 28) {
        low |= (byte & 127) << 28;
        high = (byte & 127) >> 4;
      } else high |= (byte & 127) << shift - 32;
      if (byte < 128) break;
    }
    if (halves) {
      halves[2 * i] = low;
      halves[2 * i + 1] = high;
    } else if (dtype === "bool") {
      array[i] = low !== 0 || high !== 0 ? 1 : 0;
    } else {
      const value = signed ? low : low >>> 0;
      array[i] = value;
      if (array[i] !== value) {
        throw new ModelError(
          "invalid_argument",
          `Cannot read ${label}: element ${i} is ${value}, which "${datatypeOf(dtype)}" cannot hold`,
        );
      }
    }
  }
  return array as AnyTensor["data"];
}

/** The message that holds a tensor's elements, in parts. */
export function encodeContents({ dtype, data }: AnyTensor): readonly Uint8Array[] {
  if (!isTypable(dtype)) throw new TypeError(`Elements of dtype "${dtype}" have no field in InferTensorContents`);
  const field = FIELDS[dtype];
  if (!isFixed(dtype)) {
    return encodeTexts(data as DataTypeMap["string" | "bytes"]).flatMap((text) => withField([], field, [text]));
  }
  if (data.length === 0) return [];
  const bytes = dtype === "float32" || dtype === "float64"
    ? bytesOf(data as Float32Array)
    : encodeVarints(data as DataTypeMap[IntegerDType]);
  return withField([], field, [bytes]);
}

function encodeVarints(data: DataTypeMap[IntegerDType]): Uint8Array {
  const halves = data.BYTES_PER_ELEMENT === 8
    ? new Uint32Array(data.buffer, data.byteOffset, 2 * data.length)
    : undefined;
  const lowOf = (i: number) => halves ? halves[2 * i]! : (data as Int32Array)[i]! >>> 0;
  const highOf = (i: number) => halves ? halves[2 * i + 1]! : (data as Int32Array)[i]! < 0 ? 0xffffffff : 0;
  let length = 0;
  for (let i = 0; i < data.length; i++) length += varintBytes(lowOf(i), highOf(i));
  const bytes = new Uint8Array(length);
  let at = 0;
  for (let i = 0; i < data.length; i++) {
    let low = lowOf(i);
    let high = highOf(i);
    while (high !== 0 || low > 127) {
      bytes[at++] = low & 127 | 128;
      low = (low >>> 7 | high << 25) >>> 0;
      high >>>= 7;
    }
    bytes[at++] = low;
  }
  return bytes;
}

function varintBytes(low: number, high: number): number {
  const bits = high === 0 ? 32 - Math.clz32(low) : 64 - Math.clz32(high);
  return Math.max(1, Math.ceil(bits / 7));
}
