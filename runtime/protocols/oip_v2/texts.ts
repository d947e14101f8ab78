// Elements of BYTES: texts or byte strings, alone and in the raw form, each after its length in four bytes.
import { concatInto, lengthOf } from "../../core/bytes.ts";
import type { DataTypeMap } from "../../core/dtype.ts";
import { ModelError } from "../../core/error.ts";
import { checkCount } from "./count.ts";

/** A text is an object of many times its size on the wire. */
export const MAX_TEXTS = 1_000_000;
const LENGTH_BYTES = 4;

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** The text of element `index`. */
export function decodeText(bytes: Uint8Array, index: number, label: string): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new ModelError(
      "invalid_argument",
      `Cannot read ${label}: element ${index} is not valid UTF-8, and the function does not declare dtype "bytes"`,
    );
  }
}

/** The bytes of each element. */
export function encodeTexts(data: DataTypeMap["string" | "bytes"]): readonly Uint8Array[] {
  return data.map((element) => typeof element === "string" ? encoder.encode(element) : element);
}

/** Cuts the raw form into its `count` elements. */
export function splitRawTexts(bytes: Uint8Array, count: number, label: string): Uint8Array[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const elements: Uint8Array[] = [];
  for (let at = 0; at < bytes.length;) {
    const left = bytes.length - at - LENGTH_BYTES;
    const index = elements.length;
    const length = left < 0 ? 0 : view.getUint32(at, true);
    if (left < length) {
      const why = left < 0
        ? `incomplete string length indicator of element ${index}: ${left + LENGTH_BYTES} bytes are left, wanted 4`
        : `element ${index} is ${length} bytes long, ${left} are left`;
      throw new ModelError("invalid_argument", `Cannot read ${label}: ${why}`);
    }
    at += LENGTH_BYTES + length;
    if (index < MAX_TEXTS) elements.push(bytes.subarray(at - length, at));
    else checkCount(label, index + 1, count, MAX_TEXTS);
  }
  checkCount(label, elements.length, count, MAX_TEXTS);
  return elements;
}

/** Elements in the raw form. */
export function joinRawTexts(data: DataTypeMap["string" | "bytes"]): Uint8Array {
  const parts = encodeTexts(data).flatMap((element) => {
    const length = new Uint8Array(LENGTH_BYTES);
    new DataView(length.buffer).setUint32(0, element.length, true);
    return [length, element];
  });
  return concatInto(new Uint8Array(lengthOf(parts)), parts);
}
