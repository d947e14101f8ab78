// What a form of a function holds, and what of it is sent.
import { parseTensor, sampleText } from "./tensor_text.js";
/** @import { FunctionJson, SentTensor } from "../messages.ts" */
/** @import { CallBody, Form, Spec } from "./types.ts" */

/** @type {Spec} */
const UNTYPED = { name: "0", dtype: "any", description: "any tensor" };

/**
 * The tensors that a function declares.
 *
 * @param {FunctionJson} fn
 */
export const specsOf = (fn) => fn.input ?? [UNTYPED];

/** @param {Spec} spec */
export const labelOf = ({ name }) => name === "0" ? "input" : name;

/** @param {FunctionJson} fn @returns {Form} */
export function initialForm(fn) {
  const inputs = specsOf(fn).map((spec) => [
    spec.name,
    { text: spec.optional ? "" : sampleText(spec), dtype: spec.dtype === "any" ? "float32" : spec.dtype },
  ]);
  return { inputs: Object.fromEntries(inputs), params: {}, more: "" };
}

/**
 * The body of a call. Throws where something cannot be read.
 *
 * @param {FunctionJson} fn
 * @param {Form} form
 * @returns {CallBody}
 */
export function bodyOf(fn, form) {
  /** @type {Record<string, SentTensor>} */
  const inputs = {};
  for (const spec of specsOf(fn)) {
    const value = form.inputs[spec.name];
    if (!value) continue;
    if (!value.tensor && value.text === "" && spec.optional) continue;
    inputs[spec.name] = value.tensor ?? parseTensor(value.text, spec, value.dtype, labelOf(spec));
  }
  return { inputs, params: paramsOf(fn, form) };
}

/** @param {FunctionJson} fn @param {Form} form @returns {Record<string, unknown>} */
export function paramsOf(fn, form) {
  if (fn.params) return Object.fromEntries(Object.entries(form.params).filter(([, value]) => value !== ""));
  if (form.more.trim() === "") return {};
  try {
    return JSON.parse(form.more);
  } catch {
    throw new Error('Parameters: wanted a JSON object such as {"name": "value"}');
  }
}
