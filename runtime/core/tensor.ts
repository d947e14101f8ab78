import {
  ARRAY_TYPES,
  type DataTypeMap,
  type DType,
  ELEMENT_BYTES,
  type FixedDType,
  isDataOf,
  isFixed,
} from "./dtype.ts";
import { ModelError, quote } from "./error.ts";

/** Dims of a tensor; in a spec -1 stands for any. */
export type Shape = readonly number[];

/** A dense, row-major array. The rank of a declared shape survives in the type: `[n, 4]` destructures to two numbers. */
export interface Tensor<D extends DType = DType, S extends Shape = Shape> {
  /** The element type. */
  readonly dtype: D;
  /** The dims, outermost first; `[]` is a scalar. */
  readonly shape: { readonly [K in keyof S]: number };
  /** The elements in row-major order. */
  readonly data: DataTypeMap[D];
  /** The dtype as the client spelt it, where that differs; error texts use it. */
  readonly sentAs?: string;
}

/** A tensor of any dtype; narrows on `dtype`. */
export type AnyTensor = { [D in DType]: Tensor<D> }[DType];

/** Tensors by name; those without a declared name are "0", "1", ... by position. */
export type NamedTensors = Readonly<Record<string, AnyTensor>>;

// Node pools the bytes of small messages in slabs of this size; only larger payloads own their buffer.
const POOL_BYTES = 8192;

/** The number of elements of `shape`, or undefined where it is too large to count exactly. */
export function elementCount(shape: Shape): number | undefined {
  if (shape.includes(0)) return 0;
  let count = 1;
  for (const dim of shape) {
    count *= dim;
    if (!Number.isSafeInteger(count)) return undefined;
  }
  return count;
}

/**
 * Makes a tensor; `shape` is `[data.length]` by default.
 *
 * Throws `TypeError` where the data does not fit the dtype and `RangeError` where it does not fit the shape.
 *
 * @example
 * ```ts
 * import { tensor } from "tensorlet";
 *
 * const x = tensor("float32", [1, 2, 3, 4], [2, 2]);
 * console.assert(x.data instanceof Float32Array && x.shape[0] === 2);
 * ```
 */
export function tensor<D extends DType, const S extends Shape = readonly [number]>(
  dtype: D,
  data:
    | DataTypeMap[D]
    | (D extends "int64" | "uint64" ? readonly bigint[] : D extends FixedDType ? readonly number[] : never),
  shape?: S,
): Tensor<D, S> {
  const array = isFixed(dtype) && Array.isArray(data)
    ? fromElements(dtype, data as unknown as readonly number[])
    : data;
  if (!isDataOf(dtype, array)) throw new TypeError(`Cannot make a tensor of dtype "${dtype}" from this data`);
  const dims: Shape = shape ?? [data.length];
  if (elementCount(dims) !== data.length) {
    throw new RangeError(`Cannot make a tensor: ${data.length} elements do not fill shape [${dims}]`);
  }
  return { dtype, shape: dims as unknown as Tensor<D, S>["shape"], data: array as DataTypeMap[D] };
}

function fromElements<D extends FixedDType>(dtype: D, elements: readonly (number | bigint)[]): DataTypeMap[D] {
  const array = new ARRAY_TYPES[dtype](elements.length);
  (array as { set(values: readonly unknown[]): void }).set(elements);
  return array;
}

/**
 * Row-major little-endian bytes of a message that has been decoded, as the array of `dtype`: a view where the payload
 * owns its buffer, one copy else. A large payload that is not aligned moves down in its message, over its own tag and
 * length. The byte length must be a multiple of the element's size.
 */
export function viewBytes<D extends FixedDType>(dtype: D, bytes: Uint8Array): DataTypeMap[D] {
  const size = ELEMENT_BYTES[dtype];
  const source = bytes.byteLength < POOL_BYTES ? new Uint8Array(bytes) : aligned(bytes, size);
  return new ARRAY_TYPES[dtype](source.buffer, source.byteOffset, bytes.byteLength / size);
}

/** From that size on a field of bytes has eight bytes of tags and lengths before it that are its own. */
const MIN_MOVED_BYTES = 65_536;

function aligned(bytes: Uint8Array, size: number): Uint8Array {
  const { buffer, byteOffset, byteLength } = bytes;
  const by = byteOffset % size;
  if (by === 0) return bytes;
  if (byteLength < MIN_MOVED_BYTES) return new Uint8Array(bytes);
  const moved = new Uint8Array(buffer, byteOffset - by, byteLength);
  moved.set(bytes); // fresh memory for a copy would cost several times as much
  return moved;
}

/** The bytes of a fixed-size tensor, in place. */
export function bytesOf(data: DataTypeMap[FixedDType]): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

/** How error texts name a tensor's dtype: as the client sent it. */
export function dtypeLabel(value: AnyTensor): string {
  return quote(value.sentAs ?? value.dtype);
}

/**
 * Maps every element of a numeric tensor and keeps its dtype and shape: `onNumber` for dtypes up to 32 bits and
 * floats, `onBigInt` for int64 and uint64, so that these stay exact. Floats are rounded once, integers wrap.
 *
 * Throws a {@linkcode ModelError} `invalid_argument` for bool, strings, bytes and a missing tensor.
 *
 * @example
 * ```ts
 * import { mapNumeric, tensor } from "tensorlet";
 *
 * const doubled = mapNumeric(tensor("int64", [2n ** 53n + 1n]), (v) => v * 2, (v) => v * 2n);
 * console.assert(doubled.data[0] === 2n ** 54n + 2n);
 * ```
 */
export function mapNumeric<T extends AnyTensor>(
  input: T | undefined,
  onNumber: (value: number) => number,
  onBigInt: (value: bigint) => bigint,
): T {
  if (input === undefined) throw new ModelError("invalid_argument", "Cannot map a tensor: none was sent, 1 is wanted");
  const { dtype, data } = input as AnyTensor;
  switch (dtype) {
    case "bool":
    case "string":
    case "bytes":
      throw new ModelError(
        "invalid_argument",
        `Cannot map a tensor of dtype ${
          dtypeLabel(input)
        }: a numeric dtype is wanted (int8..int64, uint8..uint64, float16..float64, bfloat16)`,
      );
    case "int64":
    case "uint64":
      return { ...input, data: (data as BigInt64Array).map(onBigInt) };
    case "bfloat16":
      return { ...input, data: (data as Uint16Array).map((bits) => toBfloat16(onNumber(fromBfloat16(bits)))) };
    default:
      return { ...input, data: (data as Float32Array).map(onNumber) };
  }
}

/**
 * The elements as float32; int64 and uint64 become the nearest float.
 *
 * Throws a {@linkcode ModelError} `failed_precondition` for strings and bytes.
 */
export function toFloat32(input: AnyTensor): Float32Array {
  switch (input.dtype) {
    case "string":
    case "bytes":
      throw new ModelError("failed_precondition", `Cannot express a tensor of dtype ${dtypeLabel(input)} as float32`);
    case "float32":
      return input.data;
    case "int64":
    case "uint64":
      return Float32Array.from(input.data as BigInt64Array, toDouble);
    case "bfloat16":
      return Float32Array.from(input.data, fromBfloat16);
    default:
      return Float32Array.from(input.data);
  }
}

// A double on the way to a float32. Where it cannot be exact its last bit is odd, which remembers that something was
// cut: so the float32 is rounded once, not twice.
function toDouble(value: bigint): number {
  const near = Number(value);
  if (Number.isSafeInteger(near) || BigInt.asUintN(11, value) === 0n) return near;
  return Number(((value >> 11n) | 1n) << 11n);
}

const scratch = new DataView(new ArrayBuffer(4));

/** The number that the bits of a bfloat16 mean. */
export function fromBfloat16(bits: number): number {
  scratch.setUint32(0, bits << 16);
  return scratch.getFloat32(0);
}

/** The bits of the nearest bfloat16. */
export function toBfloat16(value: number): number {
  scratch.setFloat32(0, value);
  let bits = scratch.getUint32(0);
  if (Number.isNaN(value)) return (bits >>> 16) | 0x40; // stays a NaN when its low half is cut
  const near = scratch.getFloat32(0);
  if (near !== value) bits = (Math.abs(near) > Math.abs(value) ? bits - 1 : bits) | 1; // odd, as in toDouble()
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16; // round to nearest, ties to even
}

/** What the elements take in memory, in bytes; of strings their characters. */
export function byteLengthOf(tensors: NamedTensors): number {
  let bytes = 0;
  for (const { data } of Object.values(tensors)) {
    if (ArrayBuffer.isView(data)) bytes += data.byteLength;
    else for (const element of data) bytes += element.length;
  }
  return bytes;
}
