// Values of a call as the snippets' languages share them.
import { countOf } from "./tensor_text.js";
/** @import { FunctionJson, JsonElement, SentTensor } from "../messages.ts" */
/** @import { Subject, Value } from "./types.ts" */

/** More elements than these would hide the code: zeros stand for them. */
const MAX_WRITTEN = 32;

/** What a chat's snippet says. */
export const GREETING = "Good morning!";

/**
 * The name that calls this version.
 *
 * @param {FunctionJson} fn
 */
export const modelOf = ({ name, version, isDefault }) => isDefault ? name : `${name}@${version}`;

/**
 * The inputs in the order of the declaration.
 *
 * @param {Subject} subject
 * @returns {readonly (Value & { readonly name: string })[]}
 */
export function valuesOf({ fn, body: { inputs } }) {
  const names = fn.input?.map(({ name }) => name) ?? Object.keys(inputs);
  return names.flatMap((name) => {
    const tensor = inputs[name];
    return tensor ? [{ name, ...valueOf(tensor) }] : [];
  });
}

/** @param {SentTensor} tensor @returns {Value} */
function valueOf(tensor) {
  const { dtype, shape } = tensor;
  const count = countOf(shape);
  return { dtype, shape, count, elements: "data" in tensor && count <= MAX_WRITTEN ? tensor.data : undefined };
}

/**
 * The parameters with numbers and booleans as such.
 *
 * @param {Subject} subject
 * @returns {Readonly<Record<string, unknown>>}
 */
export function paramsOf({ fn, body: { params } }) {
  return Object.fromEntries(
    Object.entries(params).map(([name, value]) => [name, typed(fn.params?.[name]?.type, value)]),
  );
}

/** @param {string | undefined} type @param {unknown} value */
function typed(type, value) {
  if (type === "number" || type === "integer") return Number(value);
  return type === "boolean" ? value === "true" : value;
}

/**
 * Whether `inference.v1`, whose tensors are flat float32, has room for the inputs.
 *
 * @param {readonly Value[]} values
 */
export const fitsV1 = (values) => values.length === 0 || values.length === 1 && values[0]?.dtype === "float32";

/**
 * The parameters as `inference.v1` has them, with the shape where the function does not declare it.
 *
 * @param {Subject} subject
 * @returns {Readonly<Record<string, string>>}
 */
export function textParamsOf(subject) {
  const { fn } = subject;
  const [value] = valuesOf(subject);
  const needsShape = value && value.shape.length !== 1 && !fn.input?.[0]?.shape;
  const params = Object.entries(subject.body.params).map(([name, param]) => [name, String(param)]);
  return { ...Object.fromEntries(params), ...needsShape && { shape: value.shape.join(",") } };
}

/**
 * Whether a function writes on from a text.
 *
 * @param {FunctionJson} fn
 */
export const hasPrompt = (fn) =>
  fn.params?.["prompt"]?.type === "string" && !fn.input?.some(({ optional }) => !optional);
