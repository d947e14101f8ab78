// Values of nested JSON arrays as tensors, and tensors in another dtype: exact but for the rounding of floats, or refused.
import { ARRAY_TYPES, type DType, type FixedDType, isFixed } from "../core/dtype.ts";
import { ModelError } from "../core/error.ts";
import { type AnyTensor, fromBfloat16, type Shape, toBfloat16 } from "../core/tensor.ts";
import { describeJson, type Json } from "./json.ts";

/** One value of a tensor, or of JSON. */
export type Scalar = boolean | bigint | number | string | Uint8Array;

/** Values that have no dtype yet. */
export interface Elements {
  readonly shape: Shape;
  /** Row-major. */
  readonly values: readonly Scalar[];
}

/** The values of nested arrays; a scalar has shape `[]`. Throws `invalid_argument` where rows are not alike. */
export function elementsOf(json: Json, label: string): Elements {
  const shape: number[] = [];
  for (let first = json; Array.isArray(first); first = first[0] ?? null) shape.push(first.length);
  const values: Scalar[] = [];
  const path: number[] = [];
  const collect = (value: Json): void => {
    const length = shape[path.length];
    if (length === undefined) {
      if (value === null || typeof value === "object") {
        throw misfit(label, path, value, "a number, a text or a boolean");
      }
      values.push(value);
      return;
    }
    if (!Array.isArray(value) || value.length !== length) {
      throw misfit(label, path, value, `an array of ${length}, as before it`);
    }
    for (const [i, part] of value.entries()) {
      path.push(i);
      collect(part);
      path.pop();
    }
  };
  collect(json);
  return { shape, values };
}

function misfit(label: string, path: readonly number[], value: Json, wanted: string): ModelError {
  const element = path.length > 0 ? `element [${path.join("][")}]` : "it";
  return unreadable(label, `${element} is ${describeJson(value)}, wanted ${wanted}`);
}

const NOT_FINITE: ReadonlyMap<unknown, number> = new Map([
  ["NaN", NaN],
  ["Infinity", Infinity],
  ["-Infinity", -Infinity],
]);

/** The dtype that values have where nobody names one: int64 for whole numbers, float32 for others. */
export function guessDType({ values }: Elements): DType {
  const kinds = new Set(values.map((value) => typeof value));
  if (kinds.has("string")) return kinds.has("number") || kinds.has("bigint") ? "float32" : "string";
  if (kinds.has("boolean")) return "bool";
  return kinds.has("number") || kinds.size === 0 ? "float32" : "int64";
}

/** A tensor of the values. Throws `invalid_argument` where one of them is none of `dtype`. */
export function toTensor({ shape, values }: Elements, dtype: DType, label: string): AnyTensor {
  const convert = CONVERT[dtype];
  const converted = values.map((value, i) => {
    const result = convert(value);
    if (result !== undefined) return result;
    const shown = value instanceof Uint8Array ? `${value.length} bytes` : describeJson(value);
    throw unreadable(label, `${positionOf(i, shape)} is ${shown}, wanted ${wanted(dtype)}`);
  });
  return { dtype, shape, data: isFixed(dtype) ? typedArray(dtype, converted) : converted } as AnyTensor;
}

function typedArray(dtype: FixedDType, values: readonly unknown[]): AnyTensor["data"] {
  const array = new ARRAY_TYPES[dtype](values.length);
  (array as { set(values: readonly unknown[]): void }).set(values);
  return array as AnyTensor["data"];
}

/** The tensor with its values as `dtype`. Throws `invalid_argument` where that has no such value. */
export function castTensor(tensor: AnyTensor, dtype: DType, label: string): AnyTensor {
  return tensor.dtype === dtype ? tensor : toTensor({ shape: tensor.shape, values: scalarsOf(tensor) }, dtype, label);
}

/** The values of a tensor as they are meant: bits as booleans, bfloat16 as numbers. */
export function scalarsOf({ dtype, data }: AnyTensor): readonly Scalar[] {
  switch (dtype) {
    case "bool":
      return Array.from(data, (bit) => bit !== 0);
    case "bfloat16":
      return Array.from(data, fromBfloat16);
    default:
      return Array.from<Scalar>(data);
  }
}

type Convert = (value: Scalar) => boolean | bigint | number | string | Uint8Array | undefined;

const CONVERT: Readonly<Record<DType, Convert>> = {
  bool: (value) => {
    if (typeof value === "boolean") return Number(value);
    return value === 0n || value === 1n || value === 0 || value === 1 ? Number(value) : undefined;
  },
  int8: narrow(8, true),
  int16: narrow(16, true),
  int32: narrow(32, true),
  int64: whole(64, true),
  uint8: narrow(8, false),
  uint16: narrow(16, false),
  uint32: narrow(32, false),
  uint64: whole(64, false),
  float16: rounded(Math.f16round),
  bfloat16: (value) => {
    const number = rounded((v) => fromBfloat16(toBfloat16(v)))(value);
    return number === undefined ? undefined : toBfloat16(number);
  },
  float32: rounded(Math.fround),
  float64: rounded((value) => value),
  string: (value) => typeof value === "string" ? value : undefined,
  bytes: (value) => {
    if (typeof value !== "string") return value instanceof Uint8Array ? value : undefined;
    try {
      return Uint8Array.fromBase64(value);
    } catch {
      return undefined;
    }
  },
};

function range(bits: number, signed: boolean): readonly [min: bigint, max: bigint] {
  return signed ? [-(1n << BigInt(bits - 1)), (1n << BigInt(bits - 1)) - 1n] : [0n, (1n << BigInt(bits)) - 1n];
}

function whole(bits: number, signed: boolean): (value: Scalar) => bigint | undefined {
  const [min, max] = range(bits, signed);
  return (value) => {
    if (
      typeof value === "number" ? !Number.isInteger(value) : typeof value !== "bigint" && typeof value !== "boolean"
    ) {
      return undefined;
    }
    const number = BigInt(value as number | bigint | boolean);
    return number >= min && number <= max ? number : undefined;
  };
}

function narrow(bits: number, signed: boolean): (value: Scalar) => number | undefined {
  const convert = whole(bits, signed);
  return (value) => {
    const number = convert(value);
    return number === undefined ? undefined : Number(number);
  };
}

// A finite value stays one: beyond the largest there is no rounding.
function rounded(round: (value: number) => number): (value: Scalar) => number | undefined {
  return (value) => {
    const known = NOT_FINITE.get(value);
    if (known !== undefined) return known;
    if (typeof value !== "number" && typeof value !== "bigint" && typeof value !== "boolean") return undefined;
    const number = Number(value);
    return Number.isFinite(number) && !Number.isFinite(round(number)) ? undefined : number;
  };
}

function wanted(dtype: DType): string {
  const [, sign, bits] = /^(u?)int(\d+)$/.exec(dtype) ?? [];
  if (bits !== undefined) {
    const [min, max] = range(Number(bits), sign === "");
    return `a whole number from ${min} to ${max} (${dtype})`;
  }
  if (dtype === "bool") return "true, false, 1 or 0 (bool)";
  if (dtype === "bytes") return "a text in base64 (bytes)";
  return dtype === "string" ? "a text (string)" : `a number that ${dtype} can hold, "NaN", "Infinity" or "-Infinity"`;
}

function positionOf(index: number, shape: Shape): string {
  if (shape.length === 0) return "it";
  const position: number[] = [];
  for (const dim of shape.toReversed()) {
    position.unshift(index % dim);
    index = Math.floor(index / dim);
  }
  return `element [${position.join("][")}]`;
}

function unreadable(label: string, problem: string): ModelError {
  return new ModelError("invalid_argument", `Cannot read ${label}: ${problem}`);
}
