/** The element types of tensors, by their NumPy names, and the JavaScript array that holds each. */
export interface DataTypeMap {
  /** One byte an element, 0 or 1. */
  bool: Uint8Array;
  /** 8 bits, signed. */
  int8: Int8Array;
  /** 16 bits, signed. */
  int16: Int16Array;
  /** 32 bits, signed. */
  int32: Int32Array;
  /** Exact: elements are `bigint`. */
  int64: BigInt64Array;
  /** 8 bits. */
  uint8: Uint8Array;
  /** 16 bits. */
  uint16: Uint16Array;
  /** 32 bits. */
  uint32: Uint32Array;
  /** Exact: elements are `bigint`. */
  uint64: BigUint64Array;
  /** Half precision. */
  float16: Float16Array;
  /** Raw bits (the high half of a float32): JavaScript has no bfloat16 array. */
  bfloat16: Uint16Array;
  /** Single precision. */
  float32: Float32Array;
  /** Double precision. */
  float64: Float64Array;
  /** Texts. */
  string: string[];
  /** Byte strings. */
  bytes: Uint8Array[];
}

/** An element type's name. */
export type DType = keyof DataTypeMap;

/** The dtypes whose elements have a fixed size, and that size in bytes. */
export const ELEMENT_BYTES = {
  bool: 1,
  int8: 1,
  int16: 2,
  int32: 4,
  int64: 8,
  uint8: 1,
  uint16: 2,
  uint32: 4,
  uint64: 8,
  float16: 2,
  bfloat16: 2,
  float32: 4,
  float64: 8,
} as const satisfies Readonly<Record<FixedDType, number>>;

/** A dtype whose elements have a fixed size. */
export type FixedDType = Exclude<DType, "string" | "bytes">;

/** Every dtype, in the order in which error texts list them. */
export const DTYPES: readonly DType[] = [...Object.keys(ELEMENT_BYTES) as FixedDType[], "string", "bytes"];

type FixedArrayConstructor<D extends FixedDType> = {
  readonly BYTES_PER_ELEMENT: number;
  readonly name: string;
  new (length: number): DataTypeMap[D];
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): DataTypeMap[D];
};

// Clients run on Node 20 too, where there is none.
const Halves: FixedArrayConstructor<"float16"> = globalThis.Float16Array ?? class {
  constructor() {
    throw new TypeError('Cannot hold a tensor of dtype "float16": this runtime has no Float16Array');
  }
};

/** The typed array class of each fixed-size dtype. */
export const ARRAY_TYPES: { readonly [D in FixedDType]: FixedArrayConstructor<D> } = {
  bool: Uint8Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  float16: Halves,
  bfloat16: Uint16Array,
  float32: Float32Array,
  float64: Float64Array,
};

/** Whether `value` names a dtype. */
export function isDType(value: unknown): value is DType {
  return typeof value === "string" && (DTYPES as readonly string[]).includes(value);
}

/** Whether elements of `dtype` have a fixed size. */
export function isFixed(dtype: DType): dtype is FixedDType {
  return dtype !== "string" && dtype !== "bytes";
}

/** Whether `data` is the array that holds elements of `dtype`. */
export function isDataOf(dtype: DType, data: unknown): boolean {
  if (!isDType(dtype)) return false; // a handler's answer may say anything
  if (isFixed(dtype)) return data instanceof ARRAY_TYPES[dtype];
  if (!Array.isArray(data)) return false;
  return dtype === "string"
    ? data.every((element) => typeof element === "string")
    : data.every((element) => element instanceof Uint8Array);
}
