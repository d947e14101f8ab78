// Images as tensors: which inputs take one, and how its pixels become elements. No canvas.
/** @import { SentTensor } from "../messages.ts" */
/** @import { DType, Spec } from "./types.ts" */

/**
 * How an input takes an image.
 *
 * @typedef {object} Layout
 * @property {readonly number[]} shape
 * @property {number} width
 * @property {number} height
 * @property {1 | 3} channels
 * @property {boolean} channelsLast
 */

/**
 * How pixels become numbers.
 *
 * @typedef {"unit" | "signed" | "byte" | "imagenet"} Range
 */

/** What dims that may be anything are. */
const SIDE = 224;
/** What is smaller is no image. */
const LEAST_SIDE = 8;
const MNIST_PIXELS = 28 * 28;
const IMAGENET = { mean: [0.485, 0.456, 0.406], deviation: [0.229, 0.224, 0.225] };

/**
 * The layout of an input that takes images, by its shape or, without one, the first that its description names.
 *
 * @param {Spec} spec
 * @returns {Layout | undefined}
 */
export function layoutOf({ dtype, shape, description = "" }) {
  if (!["any", "float32", "float64", "uint8"].includes(dtype)) return undefined;
  const named = /\[\s*(?:N|-1|\d+)(?:\s*,\s*(?:-1|\d+))+\s*\]/.exec(description)?.[0];
  const dims = shape ?? named?.slice(1, -1).split(",").map((dim) => dim.trim() === "N" ? -1 : Number(dim));
  return dims && layoutOfDims(dims);
}

/** @param {readonly number[]} dims @returns {Layout | undefined} */
function layoutOfDims(dims) {
  const [a = 0, b = 0, c = 0, d = 0] = dims;
  const isOne = a === 1 || a === -1;
  if (dims.length === 4 && isOne) return channelsFirst([1, b, c, d]) ?? channelsLast([1, b, c, d]);
  if (dims.length === 3) {
    return channelsFirst([a, b, c]) ?? channelsLast([a, b, c]) ?? (isOne ? grey([1, b, c]) : undefined);
  }
  if (dims.length === 2 && isOne && b === MNIST_PIXELS) {
    return { shape: [1, b], width: 28, height: 28, channels: 1, channelsLast: true };
  }
  return undefined;
}

/** @param {readonly number[]} dims */
const channelsFirst = (dims) => layout(dims, dims.at(-3), dims.at(-2), dims.at(-1), false);
/** @param {readonly number[]} dims */
const channelsLast = (dims) => layout(dims, dims.at(-1), dims.at(-3), dims.at(-2), true);
/** @param {readonly number[]} dims */
const grey = (dims) => layout(dims, 1, dims.at(-2), dims.at(-1), true);

/**
 * @param {readonly number[]} dims
 * @param {number | undefined} channels
 * @param {number | undefined} h
 * @param {number | undefined} w
 * @param {boolean} channelsLast
 * @returns {Layout | undefined}
 */
function layout(dims, channels, h, w, channelsLast) {
  const [height, width] = [h === -1 ? SIDE : h ?? 0, w === -1 ? SIDE : w ?? 0];
  if (channels !== 1 && channels !== 3 || height < LEAST_SIDE || width < LEAST_SIDE) return undefined;
  return { shape: dims.map((dim) => dim === -1 ? SIDE : dim), width, height, channels, channelsLast };
}

/**
 * Pixels, RGBA as a canvas gives them, as the tensor that the function takes.
 *
 * @param {Uint8ClampedArray} pixels
 * @param {Layout} layout
 * @param {Range} range
 * @param {DType} dtype
 * @returns {SentTensor}
 */
export function tensorOf(pixels, { shape, width, height, channels, channelsLast }, range, dtype) {
  const count = width * height;
  const Values = dtype === "uint8" ? Uint8Array : dtype === "float64" ? Float64Array : Float32Array;
  const values = new Values(count * channels);
  for (let i = 0; i < count; i++) {
    for (let c = 0; c < channels; c++) {
      const value = channels === 1 ? luminance(pixels, i * 4) : /** @type {number} */ (pixels[i * 4 + c]);
      values[channelsLast ? i * channels + c : c * count + i] = scale(value, range, c);
    }
  }
  return { dtype, shape, base64: toBase64(new Uint8Array(values.buffer)) };
}

// After ITU-R Rec. 601.
/** @param {Uint8ClampedArray} pixels @param {number} at */
const luminance = (pixels, at) =>
  0.299 * (pixels[at] ?? 0) + 0.587 * (pixels[at + 1] ?? 0) + 0.114 * (pixels[at + 2] ?? 0);

/** @param {number} value 0 to 255. @param {Range} range @param {number} channel */
function scale(value, range, channel) {
  switch (range) {
    case "unit":
      return value / 255;
    case "signed":
      return value / 127.5 - 1;
    case "byte":
      return value;
    case "imagenet":
      return (value / 255 - (IMAGENET.mean[channel] ?? 0)) / (IMAGENET.deviation[channel] ?? 1);
  }
}

/** @param {Uint8Array} bytes */
function toBase64(bytes) {
  const CHUNK = 0x8000;
  let text = "";
  for (let at = 0; at < bytes.length; at += CHUNK) text += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  return btoa(text);
}

/**
 * Where the ink of a drawing is, white on black: its box, and its centre of mass.
 *
 * @param {Uint8ClampedArray} pixels
 * @param {number} width
 */
export function inkOf(pixels, width) {
  let [left, top, right, bottom, mass, x, y] = [Infinity, Infinity, -Infinity, -Infinity, 0, 0, 0];
  for (let i = 0; i * 4 < pixels.length; i++) {
    const ink = luminance(pixels, i * 4);
    if (ink < 1) continue;
    const [column, row] = [i % width, Math.floor(i / width)];
    left = Math.min(left, column);
    right = Math.max(right, column + 1);
    top = Math.min(top, row);
    bottom = Math.max(bottom, row + 1);
    mass += ink;
    x += ink * (column + 0.5);
    y += ink * (row + 0.5);
  }
  if (mass === 0) return undefined;
  return { left, top, width: right - left, height: bottom - top, x: x / mass, y: y / mass };
}
