// Elements of tensors as JSON, both ways. 64-bit integers are exact; NaN and the infinities, which JSON has no numbers
// for, are the texts "NaN", "Infinity" and "-Infinity", as protobuf's JSON has them.
import { ARRAY_TYPES, type DType } from "../../core/dtype.ts";
import { ModelError, quote } from "../../core/error.ts";
import { type AnyTensor, fromBfloat16, tensor, toBfloat16 } from "../../core/tensor.ts";
import type { Reviver } from "../http.ts";
import { checkCount } from "./count.ts";
import { datatypeOf } from "./datatype.ts";
import { MAX_TEXTS } from "./texts.ts";

/** Keeps integers that a number would round, as bigints. */
export const keepIntegers: Reviver = (_key, value, { source }) =>
  isRounded(value) && source !== undefined && /^-?\d+$/.test(source) ? BigInt(source) : value;

/** Whether a value, or one in an array, may be an integer that was rounded. */
export function isRounded(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(isRounded);
  return typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
}

const SPECIAL: Readonly<Record<string, number>> = { NaN, Infinity, "-Infinity": -Infinity };

/** Reads the `count` elements, whose arrays may be nested as the shape is. */
export function decodeJson(values: readonly unknown[], dtype: DType, count: number, label: string): AnyTensor["data"] {
  const elements = values.some(Array.isArray) ? values.flat(Infinity) as unknown[] : values;
  checkCount(label, elements.length, count, dtype === "string" || dtype === "bytes" ? MAX_TEXTS : undefined);
  const each = <T>(read: (element: unknown) => T | undefined, wanted: string) =>
    elements.map((element, i) => {
      const value = read(element);
      if (value !== undefined) return value;
      const got = typeof element === "bigint" ? `${element}` : quote(JSON.stringify(element) ?? "nothing");
      throw new ModelError(
        "invalid_argument",
        `Cannot read ${label}: element ${i} is ${got}, wanted ${wanted} for "${datatypeOf(dtype)}"`,
      );
    });
  switch (dtype) {
    case "string":
      return each((element) => typeof element === "string" ? element : undefined, "a text");
    case "bytes": {
      const encoder = new TextEncoder();
      return each((element) => typeof element === "string" ? encoder.encode(element) : undefined, "a text");
    }
    case "bool":
      return Uint8Array.from(each((element) => typeof element === "boolean" ? +element : undefined, "true or false"));
    case "int64":
      return BigInt64Array.from(each((element) => bigintOf(element, BigInt.asIntN), "a whole number that fits"));
    case "uint64":
      return BigUint64Array.from(each((element) => bigintOf(element, BigInt.asUintN), "a whole number that fits"));
    case "float32":
    case "float64":
    case "float16":
      return tensor(dtype, each(floatOf, "a number")).data;
    case "bfloat16":
      return Uint16Array.from(each(floatOf, "a number"), toBfloat16);
    default: {
      const probe = new ARRAY_TYPES[dtype](1);
      const fits = (element: unknown) => {
        if (typeof element !== "number") return undefined;
        probe[0] = element;
        return probe[0] === element ? element : undefined;
      };
      return tensor(dtype, each(fits, "a whole number that fits")).data;
    }
  }
}

function bigintOf(element: unknown, cut: (bits: number, value: bigint) => bigint): bigint | undefined {
  const value = Number.isSafeInteger(element) ? BigInt(element as number) : element;
  return typeof value === "bigint" && cut(64, value) === value ? value : undefined;
}

function floatOf(element: unknown): number | undefined {
  if (typeof element === "number") return element;
  if (typeof element === "bigint") return Number(element);
  return typeof element === "string" && Object.hasOwn(SPECIAL, element) ? SPECIAL[element] : undefined;
}

/** The elements as JSON texts. Throws `failed_precondition` for byte strings that are no texts. */
export function encodeJson({ dtype, data }: AnyTensor, label: string): readonly string[] {
  const texts = <T>(values: ArrayLike<T>, write: (value: T, index: number) => string) => Array.from(values, write);
  switch (dtype) {
    case "string":
      return texts(data, (element) => JSON.stringify(element.toWellFormed()));
    case "bytes":
      return texts(data, (element, i) => JSON.stringify(textOfBytes(element, i, label)));
    case "bool":
      return texts(data, (element) => element === 0 ? "false" : "true");
    case "bfloat16":
      return texts(data, (bits) => writeFloat(fromBfloat16(bits)));
    case "float16":
    case "float32":
    case "float64":
      return texts(data, writeFloat);
    default:
      return texts<number | bigint>(data, String);
  }
}

function writeFloat(value: number): string {
  if (Number.isFinite(value)) return Object.is(value, -0) ? "-0.0" : `${value}`;
  return `"${value}"`;
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function textOfBytes(bytes: Uint8Array, index: number, label: string): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new ModelError(
      "failed_precondition",
      `Cannot write ${label} as JSON: element ${index} is not valid UTF-8; ask for binary_data`,
    );
  }
}
