// What callers write as tensors, and back.
import { fillShape, tensorLabel } from "../core/check.ts";
import type { AnyModel } from "../core/define.ts";
import { ARRAY_TYPES, type DType, type FixedDType, isDataOf } from "../core/dtype.ts";
import { ModelError, quote } from "../core/error.ts";
import { type IoSpec, isSingleSpec, type NamedSpec, namedSpecs, type TensorSpec } from "../core/spec.ts";
import { type AnyTensor, elementCount, type Shape } from "../core/tensor.ts";
import { decodeTensor, encodeTensor, type TensorData } from "../protocols/inference/tensor.ts";
import { ClientError } from "./error.ts";

function specOf(definition: AnyModel | undefined, direction: "input" | "output"): IoSpec | undefined {
  return definition?.["~model"][direction] as IoSpec | undefined;
}

/** A request's tensors. */
export interface Inputs {
  readonly inputs: readonly TensorData[];
  /** Their names, where their order does not tell them: one before the last is left out. */
  readonly names: readonly string[] | undefined;
}

/** The tensors of a request, in wire order. */
export function encodeInputs(definition: AnyModel | undefined, input: unknown): Inputs {
  const spec = specOf(definition, "input");
  if (spec && !isSingleSpec(spec)) return byName(namedSpecs(spec), input);
  const tensors = Array.isArray(input) && input.every(isTensor)
    ? input.map((value, i) => complete(value, undefined, `${i}`))
    : [complete(input, spec, "0")];
  return { inputs: tensors.map(encodeTensor), names: undefined };
}

function byName(specs: readonly NamedSpec[], input: unknown): Inputs {
  const record = typeof input === "object" && input !== null ? input as Readonly<Record<string, unknown>> : {};
  const names = specs.map(({ name }) => quote(name)).join(", ");
  for (const name of Object.keys(record)) {
    if (!specs.some((spec) => spec.name === name)) {
      throw invalid(`Cannot send input ${quote(name)}: the function has ${names}`);
    }
  }
  const sent = specs.filter(({ name }) => record[name] !== undefined);
  const missing = specs.find((spec) => !spec.optional && !sent.includes(spec));
  if (missing) throw invalid(`Cannot send the inputs: ${quote(missing.name)} is missing, wanted ${names}`);
  const isInOrder = sent.every((spec, i) => spec === specs[i]);
  return {
    inputs: sent.map((spec) => encodeTensor(complete(record[spec.name], spec, spec.name))),
    names: isInOrder ? undefined : sent.map(({ name }) => name),
  };
}

// A whole tensor, or a bare array whose dtype and shape the declaration gives.
function complete(value: unknown, spec: TensorSpec | undefined, name: string): AnyTensor {
  const label = tensorLabel("input", name);
  if (isTensor(value)) {
    if (!isDataOf(value.dtype, value.data)) {
      throw invalid(`Cannot send ${label}: its data is not of dtype ${value.dtype}`);
    }
    if (elementCount(value.shape) !== value.data.length) {
      throw invalid(`Cannot send ${label}: ${value.data.length} elements do not fill shape [${value.shape}]`);
    }
    return value;
  }
  const declared = spec?.dtype === "any" ? undefined : spec?.dtype;
  const dtype = declared ?? dtypeOf(value);
  if (dtype === undefined || !isDataOf(dtype, value)) {
    throw invalid(
      `Cannot send ${label}: wanted a tensor or ${dtype === undefined ? "a typed array" : `data of dtype ${dtype}`}`,
    );
  }
  const data = value as AnyTensor["data"];
  const shape = spec?.shape ? fillShape(spec.shape, data.length) : [data.length];
  if (!shape) {
    throw invalid(
      `Cannot send ${label}: ${data.length} elements do not fill shape [${spec!.shape}]; send a whole tensor`,
    );
  }
  return { dtype, shape, data } as AnyTensor;
}

function isTensor(value: unknown): value is AnyTensor {
  return typeof value === "object" && value !== null && "dtype" in value && "shape" in value && "data" in value;
}

// Uint8Array and Uint16Array are bytes and words, not bool and bfloat16.
function dtypeOf(value: unknown): DType | undefined {
  if (Array.isArray(value) && value.length > 0) {
    return (["string", "bytes"] as const).find((dtype) => isDataOf(dtype, value));
  }
  const names = (Object.keys(ARRAY_TYPES) as FixedDType[]).filter((name) => name !== "bool" && name !== "bfloat16");
  return names.find((dtype) => value instanceof ARRAY_TYPES[dtype]);
}

/** The tensors of an answer, in wire order. */
export function decodeOutputs(outputs: readonly TensorData[]): readonly AnyTensor[] {
  return outputs.map((data, i) => decodeTensor(data, `output ${i}`));
}

/** The tensors by name where the definition names several, else the first. */
export function nameOutputs(definition: AnyModel | undefined, outputs: readonly AnyTensor[]): unknown {
  const spec = specOf(definition, "output");
  if (spec === undefined || isSingleSpec(spec)) return outputs[0];
  return Object.fromEntries(namedSpecs(spec).slice(0, outputs.length).map(({ name }, i) => [name, outputs[i]]));
}

/** A stream's or a batch's values: flat float32, and their shape where the caller gives one. */
export function flatValues(
  value:
    | { readonly data: Float32Array; readonly shape: Shape; readonly dtype: DType }
    | Float32Array
    | readonly number[],
): { readonly values: readonly number[]; readonly shape: Shape | undefined } {
  if (isTensor(value)) {
    if (value.dtype !== "float32") throw invalid(`Cannot send the input: got dtype "${value.dtype}", wanted "float32"`);
    return { values: Array.from(value.data as Float32Array), shape: value.shape };
  }
  return { values: Array.from(value as Float32Array), shape: undefined };
}

/** A codec's failure, as the client's. */
export function asClientError(error: unknown, requestId: string): unknown {
  return error instanceof ModelError ? new ClientError("internal", error.message, { requestId, cause: error }) : error;
}

function invalid(message: string): ClientError {
  return new ClientError("invalid_argument", message);
}
