// NumPy's .npy files, format versions 1 to 3: a header in Python's notation, then the elements.
import { ModelError, quote } from "../core/error.ts";
import { elementCount } from "../core/tensor.ts";
import type { AnyTensor, Shape } from "../core/tensor.ts";
import { parseDType } from "../protocols/inference/dtype.ts";
import { decodeTensor, encodeTensor } from "../protocols/inference/tensor.ts";

const MAGIC = Uint8Array.of(0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59); // "\x93NUMPY"
const ALIGNMENT = 64;

/** Whether `bytes` begin like a .npy file. */
export function isNpy(bytes: Uint8Array): boolean {
  return MAGIC.every((byte, i) => bytes[i] === byte);
}

interface Header {
  readonly descr: string;
  readonly isFortran: boolean;
  readonly shape: Shape;
  /** Where the elements begin. */
  readonly start: number;
}

/**
 * Reads a .npy file of any dtype that tensors have, in either byte order and either order of elements. Throws
 * `invalid_argument` for anything else; `label` names the file.
 */
export function readNpy(bytes: Uint8Array, label: string): AnyTensor {
  const { descr: sent, isFortran, shape, start } = readHeader(bytes, label);
  const descr = /^[<|]V2$/.test(sent) ? "bfloat16" : sent; // NumPy has no code for it
  const { itemBytes } = parseDType(descr, label);
  const data = bytes.subarray(start);
  // An order makes no difference to data that do not fill their shape; that is refused with the rest.
  const fills = elementCount(shape)! * itemBytes === data.length;
  const { sentAs: _, ...tensor } = decodeTensor(
    { dtype: descr, shape, data: isFortran && fills ? toRowMajor(data, shape, itemBytes) : data },
    label,
  );
  return tensor as AnyTensor;
}

function readHeader(bytes: Uint8Array, label: string): Header {
  if (!isNpy(bytes)) throw unreadable(label, "it does not begin like a .npy file");
  const version = bytes[6] ?? 0;
  if (version < 1 || version > 3) throw unreadable(label, `its format version is ${version}, wanted 1 to 3`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const lengthBytes = version === 1 ? 2 : 4;
  const start = 8 + lengthBytes;
  const length = bytes.length < start ? Infinity : version === 1 ? view.getUint16(8, true) : view.getUint32(8, true);
  if (start + length > bytes.length) throw unreadable(label, "it ends in its header");
  const text = new TextDecoder(version === 3 ? "utf-8" : "latin1").decode(bytes.subarray(start, start + length));
  return { ...parseHeader(text, label), start: start + length };
}

function parseHeader(text: string, label: string): Omit<Header, "start"> {
  const descr = /['"]descr['"]\s*:\s*(?:(['"])(.*?)\1|(\[))/.exec(text);
  const order = /['"]fortran_order['"]\s*:\s*(True|False)/.exec(text);
  const dims = /['"]shape['"]\s*:\s*\(([\dL,\s]*)\)/.exec(text);
  if (!descr || !order || !dims) throw unreadable(label, `its header is ${quote(text.trim())}`);
  if (descr[3]) throw unreadable(label, "its dtype is structured; save each of its fields with np.save");
  if (/^\W?O/.test(descr[2]!)) {
    throw unreadable(label, "it holds Python objects; save it with a dtype of its own, array.astype(...)");
  }
  const shape = dims[1]!.split(",").map((dim) => dim.trim().replace(/L$/, "")).filter((dim) => dim !== "").map(Number);
  return { descr: descr[2]!, isFortran: order[1] === "True", shape };
}

function toRowMajor(data: Uint8Array, shape: Shape, itemBytes: number): Uint8Array {
  const rowMajor = new Uint8Array(data.length);
  const strides = shape.map((_, i) => shape.slice(0, i).reduce((product, dim) => product * dim, itemBytes));
  const index = shape.map(() => 0);
  let from = 0;
  for (let to = 0; to < data.length; to += itemBytes) {
    for (let i = 0; i < itemBytes; i++) rowMajor[to + i] = data[from + i]!;
    // The last index counts fastest in the one order, the first in the other.
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      from += strides[axis]!;
      if (++index[axis]! < shape[axis]!) break;
      from -= strides[axis]! * shape[axis]!;
      index[axis] = 0;
    }
  }
  return rowMajor;
}

function unreadable(label: string, problem: string): ModelError {
  return new ModelError("invalid_argument", `Cannot read ${label}: ${problem}`);
}

const CODES: Readonly<Record<string, string>> = {
  bool: "|b1",
  int8: "|i1",
  int16: "<i2",
  int32: "<i4",
  int64: "<i8",
  uint8: "|u1",
  uint16: "<u2",
  uint32: "<u4",
  uint64: "<u8",
  float16: "<f2",
  bfloat16: "<V2",
  float32: "<f4",
  float64: "<f8",
};

/** Writes a .npy file, version 1.0, little endian, in C order. */
export function writeNpy(tensor: AnyTensor): Uint8Array<ArrayBuffer> {
  const { dtype, shape, data } = encodeTensor(tensor);
  const dims = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  const header = `{'descr': '${CODES[dtype] ?? dtype}', 'fortran_order': False, 'shape': (${dims}), }`;
  const start = Math.ceil((10 + header.length + 1) / ALIGNMENT) * ALIGNMENT;
  const bytes = new Uint8Array(start + data.length);
  bytes.set(MAGIC);
  bytes.set([1, 0], MAGIC.length);
  new DataView(bytes.buffer).setUint16(8, start - 10, true);
  bytes.set(new TextEncoder().encode(`${header.padEnd(start - 11)}\n`), 10);
  bytes.set(data, start);
  return bytes;
}
