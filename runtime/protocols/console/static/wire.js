// Tensors as `inference.TensorData` has them: NumPy's bytes and its name of their dtype.
/** @import { JsonElement } from "../messages.ts" */
/** @import { Value } from "./types.ts" */

/** @typedef {(view: DataView, at: number, element: JsonElement) => void} Put */

/** @type {Readonly<Record<string, { readonly bytes: number, readonly put: Put }>>} */
const FIXED = {
  bool: { bytes: 1, put: (view, at, element) => view.setUint8(at, element ? 1 : 0) },
  int8: { bytes: 1, put: (view, at, element) => view.setInt8(at, Number(element)) },
  int16: { bytes: 2, put: (view, at, element) => view.setInt16(at, Number(element), true) },
  int32: { bytes: 4, put: (view, at, element) => view.setInt32(at, Number(element), true) },
  int64: { bytes: 8, put: (view, at, element) => view.setBigInt64(at, BigInt(element), true) },
  uint8: { bytes: 1, put: (view, at, element) => view.setUint8(at, Number(element)) },
  uint16: { bytes: 2, put: (view, at, element) => view.setUint16(at, Number(element), true) },
  uint32: { bytes: 4, put: (view, at, element) => view.setUint32(at, Number(element), true) },
  uint64: { bytes: 8, put: (view, at, element) => view.setBigUint64(at, BigInt(element), true) },
  float16: { bytes: 2, put: (view, at, element) => view.setFloat16(at, Number(element), true) },
  float32: { bytes: 4, put: (view, at, element) => view.setFloat32(at, Number(element), true) },
  float64: { bytes: 8, put: (view, at, element) => view.setFloat64(at, Number(element), true) },
  bfloat16: {
    bytes: 2,
    put: (view, at, element) => {
      const wide = new DataView(new ArrayBuffer(4));
      wide.setFloat32(0, Number(element));
      view.setUint16(at, wide.getUint16(0), true);
    },
  },
};

/** @param {Value} value @returns {{ readonly dtype: string, readonly byteLength: number, readonly base64: string }} */
export function encode({ dtype, count, elements = [] }) {
  const fixed = FIXED[dtype];
  if (!fixed) return encodeTexts(dtype, count, elements);
  const byteLength = count * fixed.bytes;
  if (elements.length === 0) return { dtype, byteLength, base64: "" };
  const view = new DataView(new ArrayBuffer(byteLength));
  elements.forEach((element, i) => fixed.put(view, i * fixed.bytes, element));
  return { dtype, byteLength, base64: toBase64(new Uint8Array(view.buffer)) };
}

/**
 * Elements of the length of the longest: UTF-32, or bytes.
 *
 * @param {string} dtype
 * @param {number} count
 * @param {readonly JsonElement[]} elements
 */
function encodeTexts(dtype, count, elements) {
  const isText = dtype === "string";
  const rows = elements.map((element) =>
    isText
      ? Array.from(`${element}`, (c) => c.codePointAt(0) ?? 0)
      : Array.from(atob(`${element}`), (c) => c.charCodeAt(0))
  );
  const length = Math.max(1, ...rows.map((row) => row.length));
  const size = isText ? 4 : 1;
  const view = new DataView(new ArrayBuffer(count * length * size));
  rows.forEach((row, i) =>
    row.forEach((code, j) => {
      const at = (i * length + j) * size;
      if (isText) view.setUint32(at, code, true);
      else view.setUint8(at, code);
    })
  );
  const bytes = new Uint8Array(view.buffer);
  return { dtype: isText ? `<U${length}` : `|S${length}`, byteLength: bytes.length, base64: toBase64(bytes) };
}

/** @param {Uint8Array} bytes */
const toBase64 = (bytes) => btoa(String.fromCharCode(...bytes));
