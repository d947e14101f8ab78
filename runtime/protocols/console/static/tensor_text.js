// Tensors as people type and read them: nested JSON.
/** @import { JsonElement, JsonTensor, SentTensor } from "../messages.ts" */
/** @import { DType, Spec } from "./types.ts" */

/** A sample of more elements than these is left to the user. */
const MAX_SAMPLE = 64;
/** Elements of an answer that are shown. */
const MAX_SHOWN = 2000;

/** @param {readonly number[]} shape */
export const countOf = (shape) => shape.reduce((product, dim) => product * dim, 1);

/**
 * The declared shape with one of whatever may be many.
 *
 * @param {Spec} spec
 * @returns {readonly number[] | undefined}
 */
export const shapeOf = ({ shape }) => shape?.map((dim) => dim === -1 ? 1 : dim);

/**
 * Whether an input is one text, which is typed as it is.
 *
 * @param {Spec} spec
 */
export const isText = (spec) => spec.dtype === "string" && countOf(shapeOf(spec) ?? []) === 1;

/**
 * What stands in a field at first.
 *
 * @param {Spec} spec
 */
export function sampleText(spec) {
  if (isText(spec)) return "";
  const shape = shapeOf(spec);
  const isFloat = spec.dtype === "any" || /float/.test(spec.dtype);
  if (!shape) return isFloat ? "[1, 2.5, 3]" : JSON.stringify(Array(3).fill(zeroOf(spec.dtype)));
  if (countOf(shape) > MAX_SAMPLE) return "";
  return nest(Array(countOf(shape)).fill(zeroOf(spec.dtype)), shape);
}

/** @param {string} dtype @returns {JsonElement} */
function zeroOf(dtype) {
  if (dtype === "bool") return false;
  return dtype === "string" || dtype === "bytes" ? "" : 0;
}

// Whole numbers that a double cannot hold stay texts.
/** @param {string} _key @param {unknown} value @param {{ source?: string }} [context] */
const keepWhole = (_key, value, context) =>
  Number.isInteger(value) && !Number.isSafeInteger(value) ? context?.source : value;

/**
 * What was typed, as a tensor. Throws an `Error` for people.
 *
 * @param {string} text
 * @param {Spec} spec
 * @param {DType} dtype
 * @param {string} label
 * @returns {JsonTensor}
 */
export function parseTensor(text, spec, dtype, label) {
  if (isText(spec)) return { dtype: "string", shape: shapeOf(spec) ?? [1], data: [text] };
  /** @type {unknown} */
  let nested;
  try {
    nested = JSON.parse(text, keepWhole);
  } catch {
    throw new Error(`${label}: wanted a tensor in JSON, such as [[1, 2], [3, 4]]`);
  }
  /** @type {number[]} */
  const shape = [];
  for (let part = nested; Array.isArray(part); part = part[0]) shape.push(part.length);
  const data = Array.isArray(nested) ? nested.flat(Infinity) : [nested];
  if (!isEven(nested, shape)) throw new Error(`${label}: its rows are not of the same length`);
  return { dtype, shape, data };
}

/** @param {unknown} part @param {readonly number[]} shape @returns {boolean} */
function isEven(part, [length, ...rest]) {
  if (length === undefined) return !Array.isArray(part);
  return Array.isArray(part) && part.length === length && part.every((each) => isEven(each, rest));
}

/**
 * A tensor as nested JSON, a row a line; the end of a long one is left out.
 *
 * @param {JsonTensor} tensor
 */
export function formatTensor({ shape, data }) {
  if (data.length <= MAX_SHOWN) return nest(data, shape);
  return `${data.slice(0, MAX_SHOWN).map((element) => JSON.stringify(element)).join(", ")}, … ${data.length} in all`;
}

/** @param {readonly JsonElement[]} data @param {readonly number[]} shape @returns {string} */
export function nest(data, shape, indent = "") {
  if (shape.length === 0) return JSON.stringify(data[0]);
  const [length = 0, ...rest] = shape;
  if (rest.length === 0) return `[${data.map((element) => JSON.stringify(element)).join(", ")}]`;
  const size = countOf(rest);
  const rows = Array.from({ length }, (_, i) => nest(data.slice(i * size, (i + 1) * size), rest, `${indent} `));
  return `[${rows.join(`,\n${indent} `)}]`;
}

/**
 * Zeros, or numbers from 0 to 1, in a shape.
 *
 * @param {Spec} spec
 * @param {DType} dtype
 * @param {boolean} isRandom
 * @returns {SentTensor}
 */
export function fill(spec, dtype, isRandom) {
  const shape = shapeOf(spec) ?? [3];
  const isFloat = /float/.test(dtype);
  const draw = () =>
    isFloat
      ? Math.round(Math.random() * 1000) / 1000
      : dtype === "bool"
      ? Math.random() < 0.5
      : Math.floor(Math.random() * 10);
  const data = Array.from({ length: countOf(shape) }, () => isRandom ? draw() : zeroOf(dtype));
  return { dtype, shape, data: dtype === "int64" || dtype === "uint64" ? data.map(String) : data };
}
