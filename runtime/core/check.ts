import type { CallParams } from "./call.ts";
import { ARRAY_TYPES, type DType, isDataOf, isDType, isFixed } from "./dtype.ts";
import { ModelError, quote } from "./error.ts";
import {
  type NamedSpec,
  paramProblem,
  type ParamSpec,
  type ParamSpecs,
  type ParamValue,
  type TensorSpec,
} from "./spec.ts";
import { type AnyTensor, dtypeLabel, elementCount, type NamedTensors, type Shape } from "./tensor.ts";

/** How error texts name a tensor: `input "image"`, or `input 0` where it has no name. */
export function tensorLabel(direction: "input" | "output", name: string): string {
  return /^\d+$/.test(name) ? `${direction} ${name}` : `${direction} ${quote(name)}`;
}

/** What is wrong with a tensor, as "got ..., wanted ...", or undefined. */
function specProblem(value: AnyTensor, spec: TensorSpec): string | undefined {
  if (spec.dtype !== "any" && value.dtype !== spec.dtype) {
    return `got dtype ${dtypeLabel(value)}, wanted "${spec.dtype}"`;
  }
  const { shape } = spec;
  if (shape === undefined) return undefined;
  const fits = shape.length === value.shape.length && shape.every((dim, i) => dim === -1 || dim === value.shape[i]);
  return fits ? undefined : `got shape [${value.shape}], wanted [${shape}]${shape.includes(-1) ? " (-1 = any)" : ""}`;
}

/**
 * Throws `invalid_argument` unless `input` holds the declared tensors. Where a dtype is wrong the error's details say
 * the tensor's name (or position) and the `wantedDtype`, for callers that can convert.
 */
export function checkInput(specs: readonly NamedSpec[], input: NamedTensors): void {
  for (const spec of specs) {
    const value = Object.hasOwn(input, spec.name) ? input[spec.name] : undefined;
    const label = tensorLabel("input", spec.name);
    if (value === undefined) {
      if (spec.optional) continue;
      throw new ModelError("invalid_argument", `Cannot accept the request: ${label} is missing, wanted ${spec.dtype}`);
    }
    const problem = specProblem(value, spec);
    if (problem === undefined) continue;
    const wrongDtype = spec.dtype !== "any" && spec.dtype !== value.dtype;
    throw new ModelError("invalid_argument", `Cannot accept ${label}: ${problem}`, {
      ...wrongDtype && { details: { input: spec.name, wantedDtype: spec.dtype } },
    });
  }
}

/**
 * Names tensors by their position in the declaration, or "0", "1", ... where there is none. Throws
 * `invalid_argument` where there are too many or too few.
 */
export function nameByPosition(specs: readonly NamedSpec[] | undefined, tensors: readonly AnyTensor[]): NamedTensors {
  if (specs === undefined) return Object.fromEntries(tensors.entries());
  const required = specs.filter((spec) => !spec.optional).length;
  if (tensors.length < required || tensors.length > specs.length) {
    const names = specs.map((spec) => spec.name === "0" ? "one unnamed" : quote(spec.name)).join(", ");
    const wanted = required === specs.length ? `${required}` : `${required} to ${specs.length}`;
    throw new ModelError(
      "invalid_argument",
      `Cannot accept the request: got ${tensors.length} input tensors, wanted ${wanted}${names ? ` (${names})` : ""}`,
    );
  }
  return Object.fromEntries(tensors.map((value, i) => [specs[i]!.name, value]));
}

/**
 * Names tensors as their sender does; by position where the function declares no names. Throws `invalid_argument`
 * for names that it does not declare.
 */
export function nameBySender(
  specs: readonly NamedSpec[] | undefined,
  names: readonly string[],
  tensors: readonly AnyTensor[],
): NamedTensors {
  if (specs === undefined || specs.some(({ name }) => name === "0")) return nameByPosition(specs, tensors);
  if (names.length !== tensors.length) {
    throw new ModelError(
      "invalid_argument",
      `Cannot accept the request: got ${tensors.length} input tensors and ${names.length} names`,
    );
  }
  const wrong = names.find((name, i) => names.indexOf(name) !== i || !specs.some((spec) => spec.name === name));
  if (wrong !== undefined) {
    const problem = names.filter((name) => name === wrong).length > 1
      ? "it came twice"
      : `the function has ${specs.length > 0 ? `only ${specs.map(({ name }) => quote(name)).join(", ")}` : "none"}`;
    throw new ModelError("invalid_argument", `Cannot accept input ${quote(wrong)}: ${problem}`);
  }
  return Object.fromEntries(tensors.map((value, i) => [names[i]!, value]));
}

/** `shape` with its one unknown dim worked out for `count` elements, or undefined where that is impossible. */
export function fillShape(shape: Shape, count: number): Shape | undefined {
  const unknown = shape.filter((dim) => dim === -1).length;
  const known = elementCount(shape.filter((dim) => dim !== -1));
  if (unknown > 1 || known === undefined) return undefined;
  if (unknown === 0) return known === count ? shape : undefined;
  if (known === 0 ? count !== 0 : count % known !== 0) return undefined;
  return shape.map((dim) => dim === -1 ? (known === 0 ? 0 : count / known) : dim);
}

/** The caller's parameters, checked and converted where the function declares them. */
export function checkParams(specs: ParamSpecs | undefined, given: CallParams): CallParams {
  if (specs === undefined) return given;
  const params: Record<string, ParamValue> = Object.create(null);
  for (const [name, spec] of Object.entries(specs)) {
    const value = Object.hasOwn(given, name) ? convertParam(name, spec, given[name]!) : spec.default;
    if (value !== undefined) params[name] = value;
  }
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(specs, name)) continue;
    const known = Object.keys(specs).map((key) => quote(key)).join(", ");
    throw new ModelError(
      "invalid_argument",
      `Cannot accept param ${quote(name)}: the function has ${known ? `only ${known}` : "no params"}`,
    );
  }
  return params;
}

function convertParam(name: string, spec: ParamSpec, given: ParamValue): ParamValue {
  const refuse = (wanted: string) =>
    new ModelError("invalid_argument", `Cannot accept param ${quote(name)}: got ${quote(String(given))}, ${wanted}`);
  let value: ParamValue = given;
  if (spec.type === "boolean") {
    const text = String(given);
    if (!["true", "false", "1", "0"].includes(text)) throw refuse("wanted true, false, 1 or 0");
    value = text === "true" || text === "1";
  } else if (spec.type === "string") {
    value = String(given);
  } else if (typeof given !== "number") {
    const form = spec.type === "integer" ? /^[+-]?\d+$/ : /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
    if (!form.test(String(given))) throw refuse(spec.type === "integer" ? "wanted a whole number" : "wanted a number");
    value = Number(given);
  }
  const problem = paramProblem(spec, value);
  if (problem) throw refuse(problem);
  return value;
}

/**
 * What a handler returned as named tensors: bare arrays get their dtype and shape from the spec. Throws `internal`
 * where it is not what the function declares: that is the function's fault, and the text says which.
 */
export function completeOutput(
  specs: readonly NamedSpec[] | undefined,
  single: boolean,
  returned: unknown,
): NamedTensors {
  if (specs === undefined) {
    const tensors = Array.isArray(returned) ? returned : [returned];
    return Object.fromEntries(
      tensors.map((value, i) => [i, completeTensor(undefined, tensorLabel("output", `${i}`), value)]),
    );
  }
  const record: Record<string, unknown> = single ? { "0": returned } : { ...returned as object };
  const output: Record<string, AnyTensor> = {};
  for (const spec of specs) {
    const label = tensorLabel("output", spec.name);
    const value = record[spec.name];
    if (value === undefined) {
      if (spec.optional) continue;
      throw badOutput(label, `it is missing, wanted ${spec.dtype}`);
    }
    output[spec.name] = completeTensor(spec, label, value);
  }
  for (const name of Object.keys(record)) {
    if (!specs.some((spec) => spec.name === name)) {
      throw badOutput(tensorLabel("output", name), "the function does not declare it");
    }
  }
  return output;
}

function completeTensor(spec: TensorSpec | undefined, label: string, returned: unknown): AnyTensor {
  const whole = isTensorLike(returned);
  const dtype = whole ? returned.dtype : spec?.dtype;
  if (dtype === undefined || dtype === "any") {
    throw badOutput(label, `got ${typeLabel(returned)}, wanted a tensor { dtype, shape, data }`);
  }
  if (!isDType(dtype)) throw badOutput(label, `there is no dtype ${JSON.stringify(dtype)}`);
  const data = whole ? returned.data : returned;
  if (!isDataOf(dtype, data)) {
    throw badOutput(label, `got ${typeLabel(data)} for dtype "${dtype}", wanted ${arrayLabel(dtype)}`);
  }
  const { length } = data as { length: number };
  const shape = whole ? returned.shape : fillShape(spec?.shape ?? [-1], length);
  if (shape === undefined) throw badOutput(label, `${length} elements do not fill shape [${spec?.shape}]`);
  if (elementCount(shape) !== length) throw badOutput(label, `${length} elements do not fill shape [${shape}]`);
  const value = { dtype, shape, data: dtype === "bool" ? asBits(data as Uint8Array) : data } as AnyTensor;
  const problem = spec && specProblem(value, spec);
  if (problem) throw badOutput(label, problem);
  return value;
}

/** Whether `value` looks like a whole tensor rather than bare data. */
export function isTensorLike(value: unknown): value is AnyTensor {
  return typeof value === "object" && value !== null && "dtype" in value && "data" in value && "shape" in value &&
    Array.isArray(value.shape) && value.shape.every((dim) => Number.isSafeInteger(dim) && dim >= 0);
}

// On the wire a bool is 0 or 1; masks of 255 are a common slip.
function asBits(data: Uint8Array): Uint8Array {
  return data.some((element) => element > 1) ? data.map((element) => element === 0 ? 0 : 1) : data;
}

function typeLabel(value: unknown): string {
  if (value instanceof Promise) return "a Promise (is an await missing?)";
  if (typeof value !== "object" || value === null) return `${value === null ? "null" : typeof value}`;
  return Array.isArray(value) ? "an array" : value.constructor?.name ?? "an object";
}

function arrayLabel(dtype: DType): string {
  if (isFixed(dtype)) return ARRAY_TYPES[dtype].name;
  return dtype === "string" ? "an array of strings" : "an array of Uint8Array";
}

function badOutput(label: string, problem: string): ModelError {
  return new ModelError("internal", `The function's answer cannot be used: ${label}: ${problem}`);
}

/** Throws `invalid_argument` where `shape` and the payload's byte length disagree. */
export function checkByteLength(
  label: string,
  dtypeName: string,
  shape: Shape,
  elementBytes: number,
  byteLength: number,
): number {
  const count = elementCount(shape);
  const expected = count === undefined ? undefined : count * elementBytes;
  if (expected === byteLength && Number.isSafeInteger(expected)) return count!;
  const wanted = expected !== undefined && Number.isSafeInteger(expected) ? `${expected}` : "more than can be counted";
  throw new ModelError(
    "invalid_argument",
    `Cannot read ${label}: shape [${shape.slice(0, 64)}] of ${
      quote(dtypeName)
    } takes ${wanted} bytes, got ${byteLength}`,
  );
}
