// TensorData (bytes, shape, NumPy dtype) to tensors and back.
import { checkByteLength } from "../../core/check.ts";
import { isFixed } from "../../core/dtype.ts";
import { ModelError } from "../../core/error.ts";
import { type AnyTensor, bytesOf, type Shape, viewBytes } from "../../core/tensor.ts";
import { type NumpyDType, parseDType } from "./dtype.ts";

/** `inference.TensorData`. */
export interface TensorData {
  readonly data: Uint8Array;
  readonly shape: readonly number[];
  readonly dtype: string;
}

/** NumPy's own bound on dims. */
const MAX_RANK = 64;
/** A string is an object of many times its size on the wire. */
const MAX_STRINGS = 1_000_000;
const MAX_DIM = 2 ** 31 - 1;

/** Reads a tensor of the wire; `label` names it in errors. */
export function decodeTensor({ data, shape, dtype: sent }: TensorData, label: string): AnyTensor {
  const numpy = parseDType(sent, label);
  if (shape.length > MAX_RANK || shape.some((dim) => dim < 0)) {
    const got = shape.length > MAX_RANK ? `${shape.length} dims` : `[${shape}]`;
    throw new ModelError(
      "invalid_argument",
      `Cannot read ${label}: shape is ${got}, wanted at most ${MAX_RANK} dims from 0`,
    );
  }
  const count = checkByteLength(label, sent, shape, numpy.itemBytes, data.length);
  return {
    dtype: numpy.dtype,
    shape,
    data: decodeElements(data, numpy, count, label),
    ...sent !== numpy.dtype && { sentAs: sent },
  } as AnyTensor;
}

function decodeElements(bytes: Uint8Array, numpy: NumpyDType, count: number, label: string): AnyTensor["data"] {
  const { dtype, itemBytes, bigEndian } = numpy;
  if (!isFixed(dtype) && count > MAX_STRINGS) {
    throw new ModelError(
      "invalid_argument",
      `Cannot read ${label}: got ${count} strings, wanted at most ${MAX_STRINGS}`,
    );
  }
  if (dtype === "string") return decodeStrings(bytes, itemBytes, count, bigEndian, label);
  if (dtype === "bytes") {
    return split(bytes, itemBytes, count).map((item) => item.slice(0, item.findLastIndex((byte) => byte !== 0) + 1));
  }
  if (dtype === "bool") checkBits(bytes, label);
  return viewBytes(dtype, bigEndian ? swapBytes(bytes, itemBytes) : bytes);
}

function checkBits(bytes: Uint8Array, label: string): void {
  const at = bytes.findIndex((byte) => byte > 1);
  if (at >= 0) {
    throw new ModelError("invalid_argument", `Cannot read ${label}: bool element ${at} is ${bytes[at]}, wanted 0 or 1`);
  }
}

function swapBytes(bytes: Uint8Array, itemBytes: number): Uint8Array {
  const swapped = new Uint8Array(bytes.length);
  for (let at = 0; at < bytes.length; at += itemBytes) {
    for (let i = 0; i < itemBytes; i++) swapped[at + i] = bytes[at + itemBytes - 1 - i]!;
  }
  return swapped;
}

function split(bytes: Uint8Array, itemBytes: number, count: number): Uint8Array[] {
  return Array.from({ length: count }, (_, i) => bytes.subarray(i * itemBytes, (i + 1) * itemBytes));
}

// NumPy's str_: UTF-32, padded with zeros to a fixed width.
function decodeStrings(
  bytes: Uint8Array,
  itemBytes: number,
  count: number,
  bigEndian: boolean,
  label: string,
): string[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: count }, (_, index) => {
    let text = "";
    let padding = "";
    for (let at = index * itemBytes; at < (index + 1) * itemBytes; at += 4) {
      const point = view.getUint32(at, !bigEndian);
      if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) {
        throw new ModelError(
          "invalid_argument",
          `Cannot read ${label}: string ${index} holds 0x${point.toString(16)}, which is no character`,
        );
      }
      if (point === 0) {
        padding += "\0";
      } else {
        text += padding + String.fromCodePoint(point);
        padding = "";
      }
    }
    return text;
  });
}

/** Writes a tensor for the wire, with a dtype that `np.dtype()` takes. */
export function encodeTensor(tensor: AnyTensor): TensorData {
  const shape = tensor.shape as Shape;
  if (shape.some((dim) => dim > MAX_DIM)) {
    throw new ModelError(
      "internal",
      `The function's answer cannot be used: shape [${shape}] has a dim beyond ${MAX_DIM}`,
    );
  }
  if (tensor.dtype === "string") return { shape, ...encodeStrings(tensor.data) };
  if (tensor.dtype === "bytes") return { shape, ...encodeByteStrings(tensor.data) };
  return { shape, dtype: tensor.dtype, data: bytesOf(tensor.data) };
}

function encodeStrings(strings: readonly string[]): Omit<TensorData, "shape"> {
  const points = strings.map((text) => Array.from(text.toWellFormed(), (character) => character.codePointAt(0)!));
  const width = points.reduce((most, { length }) => Math.max(most, length), 1);
  const view = new DataView(new ArrayBuffer(4 * width * strings.length));
  points.forEach((item, index) => item.forEach((point, i) => view.setUint32(4 * (index * width + i), point, true)));
  return { dtype: `<U${width}`, data: new Uint8Array(view.buffer) };
}

function encodeByteStrings(items: readonly Uint8Array[]): Omit<TensorData, "shape"> {
  const width = items.reduce((most, { length }) => Math.max(most, length), 1);
  const data = new Uint8Array(width * items.length);
  items.forEach((item, index) => data.set(item, index * width));
  return { dtype: `|S${width}`, data };
}
