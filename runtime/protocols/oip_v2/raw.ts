// Tensors in the raw form: little-endian elements end to end, each element of BYTES after its length.
import { type DType, ELEMENT_BYTES, isFixed } from "../../core/dtype.ts";
import { ModelError } from "../../core/error.ts";
import { type AnyTensor, bytesOf, viewBytes } from "../../core/tensor.ts";
import { datatypeOf } from "./datatype.ts";
import { decodeText, joinRawTexts, splitRawTexts } from "./texts.ts";

/** The bytes of a tensor, and how many before them are nobody else's. */
export interface RawBytes {
  readonly content: Uint8Array;
  readonly headerBytes: number;
}

/** Reads the elements, in place where they are many. */
export function decodeRaw(raw: RawBytes, dtype: DType, count: number, label: string): AnyTensor["data"] {
  const { content } = raw;
  if (!isFixed(dtype)) {
    const elements = splitRawTexts(content, count, label);
    return dtype === "bytes"
      ? elements.map((bytes) => new Uint8Array(bytes))
      : elements.map((bytes, i) => decodeText(bytes, i, label));
  }
  const size = ELEMENT_BYTES[dtype];
  if (content.length !== count * size) {
    const wanted = `its shape and datatype "${datatypeOf(dtype)}" take ${count * size}`;
    throw new ModelError("invalid_argument", `Cannot read ${label}: got ${content.length} bytes, ${wanted}`);
  }
  if (dtype === "bool") {
    const at = content.findIndex((byte) => byte > 1);
    if (at >= 0) {
      throw new ModelError(
        "invalid_argument",
        `Cannot read ${label}: BOOL element ${at} is ${content[at]}, wanted 0 or 1`,
      );
    }
  }
  // What is not aligned moves down, which must not touch the tensor before it.
  return viewBytes(dtype, content.byteOffset % size > raw.headerBytes ? new Uint8Array(content) : content);
}

/** The elements in the raw form. */
export function encodeRaw(tensor: AnyTensor): Uint8Array {
  return tensor.dtype === "string" || tensor.dtype === "bytes" ? joinRawTexts(tensor.data) : bytesOf(tensor.data);
}
