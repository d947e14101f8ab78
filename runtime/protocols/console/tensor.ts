// Tensors as the console's pages send and show them: JSON with its dtype and shape. 64-bit integers are texts, so that
// they stay exact; what is large comes as bytes in base64.
import { ARRAY_TYPES, type DType, DTYPES, ELEMENT_BYTES, type FixedDType, isDType, isFixed } from "../../core/dtype.ts";
import { ModelError } from "../../core/error.ts";
import { isObject } from "../../core/json.ts";
import { type AnyTensor, elementCount, fromBfloat16, type Shape, toBfloat16 } from "../../core/tensor.ts";
import type { JsonElement, JsonTensor } from "./messages.ts";

/** A tensor as JSON has it. */
export function tensorToJson({ dtype, shape, data }: AnyTensor): JsonTensor {
  switch (dtype) {
    case "string":
      return { dtype, shape, data };
    case "bytes":
      return { dtype, shape, data: data.map((bytes) => bytes.toBase64()) };
    case "bool":
      return { dtype, shape, data: Array.from(data, (bit) => bit !== 0) };
    case "int64":
    case "uint64":
      return { dtype, shape, data: Array.from<bigint, string>(data, String) };
    case "bfloat16":
      return { dtype, shape, data: Array.from(data, (bits) => toElement(fromBfloat16(bits))) };
    case "float32":
      // The shortest text that is the same float32: 0.1, not 0.10000000149011612.
      return { dtype, shape, data: Array.from(data, (value) => toElement(shortFloat32(value))) };
    default:
      return { dtype, shape, data: Array.from<number, JsonElement>(data, toElement) };
  }
}

function toElement(value: number): JsonElement {
  return Number.isFinite(value) ? value : String(value);
}

function shortFloat32(value: number): number {
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}

/** JSON as a tensor; `label` names it in errors. Throws `invalid_argument` where it is none. */
export function tensorFromJson(json: unknown, label: string): AnyTensor {
  if (!isObject(json)) throw refuse(label, "wanted an object with dtype, shape and data");
  const { dtype, shape, data, base64 } = json;
  if (!isDType(dtype)) throw refuse(label, `dtype is ${show(dtype)}, wanted one of ${DTYPES.join(", ")}`);
  if (!isShape(shape)) throw refuse(label, `shape is ${show(shape)}, wanted an array of whole numbers from 0 on`);
  const elements = base64 === undefined ? readElements(dtype, data, label) : readBytes(dtype, base64, label);
  if (elementCount(shape) !== elements.length) {
    throw refuse(label, `${elements.length} elements do not fill shape [${shape}]`);
  }
  return { dtype, shape, data: elements } as AnyTensor;
}

function isShape(value: unknown): value is Shape {
  return Array.isArray(value) && value.length <= 64 && value.every((dim) => Number.isSafeInteger(dim) && dim >= 0);
}

function readBytes(dtype: DType, base64: unknown, label: string): AnyTensor["data"] {
  if (!isFixed(dtype)) throw refuse(label, `elements of ${dtype} have no fixed size: send data, not base64`);
  const bytes = typeof base64 === "string" ? decodeBase64(base64) : undefined;
  const size = ELEMENT_BYTES[dtype];
  if (bytes === undefined || bytes.length % size !== 0) {
    throw refuse(label, `base64 has to be a text of whole elements, ${size} bytes each, little-endian`);
  }
  return new ARRAY_TYPES[dtype](bytes.buffer, 0, bytes.length / size);
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.fromBase64(text);
  } catch {
    return undefined;
  }
}

function readElements(dtype: DType, data: unknown, label: string): AnyTensor["data"] {
  if (!Array.isArray(data)) throw refuse(label, `data is ${show(data)}, wanted a flat array`);
  const read = READ[dtype];
  const elements = data.map((element, i) => {
    const value = read(element);
    if (value === undefined) throw refuse(label, `element ${i} is ${show(element)}, wanted ${dtype}`);
    return value;
  });
  if (!isFixed(dtype)) return elements as string[] | Uint8Array[];
  const array = new ARRAY_TYPES[dtype](elements.length);
  (array as { set(values: readonly unknown[]): void }).set(elements);
  return array;
}

type Read = (element: unknown) => number | bigint | string | Uint8Array | undefined;

const READ: Readonly<Record<DType, Read>> = {
  bool: (value) => value === true || value === 1 ? 1 : value === false || value === 0 ? 0 : undefined,
  int8: integer("int8"),
  int16: integer("int16"),
  int32: integer("int32"),
  int64: bigInteger(-(2n ** 63n), 2n ** 63n - 1n),
  uint8: integer("uint8"),
  uint16: integer("uint16"),
  uint32: integer("uint32"),
  uint64: bigInteger(0n, 2n ** 64n - 1n),
  float16: float(Math.f16round),
  bfloat16: (value) => {
    const number = float((v) => fromBfloat16(toBfloat16(v)))(value);
    return number === undefined ? undefined : toBfloat16(number as number);
  },
  float32: float(Math.fround),
  float64: float((value) => value),
  string: (value) => typeof value === "string" ? value : undefined,
  bytes: (value) => typeof value === "string" ? decodeBase64(value) : undefined,
};

function integer(dtype: FixedDType): Read {
  const probe = new ARRAY_TYPES[dtype](1) as Int32Array;
  return (value) => {
    if (typeof value !== "number") return undefined;
    probe[0] = value;
    return probe[0] === value ? value : undefined;
  };
}

function bigInteger(min: bigint, max: bigint): Read {
  return (value) => {
    const isWhole = typeof value === "string" ? /^-?\d{1,20}$/.test(value) : Number.isSafeInteger(value);
    if (!isWhole) return undefined;
    const number = BigInt(value as string | number);
    return number >= min && number <= max ? number : undefined;
  };
}

// A finite value stays one: beyond the largest there is no rounding.
function float(round: (value: number) => number): Read {
  return (value) => {
    if (value === "NaN" || value === "Infinity" || value === "-Infinity") return Number(value);
    return typeof value === "number" && Number.isFinite(round(value)) ? value : undefined;
  };
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? "missing";
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

function refuse(label: string, problem: string): ModelError {
  return new ModelError("invalid_argument", `Cannot read ${label}: ${problem}`);
}
