// What the messages of inference.v1 say: a flat float32 tensor and parameters as text.
import type { CallParams } from "../../core/call.ts";
import type { CatalogEntry } from "../../core/catalog.ts";
import { fillShape, nameByPosition, tensorLabel } from "../../core/check.ts";
import { ModelError, quote } from "../../core/error.ts";
import { RESERVED_PARAMS } from "../../core/spec.ts";
import { type AnyTensor, type NamedTensors, type Shape, toFloat32 } from "../../core/tensor.ts";
import { metadataParams } from "../adapter.ts";

/** `inference.v1.PredictRequest`. */
export interface PredictRequest {
  readonly model_id: string;
  readonly input_tensor: ArrayLike<number>;
  readonly params: Readonly<Record<string, string>>;
  readonly max_tokens: number;
}

/** The parameters of a request, those that the protocol itself reads apart. */
export interface RequestParams {
  readonly params: CallParams;
  /** `params["shape"]`. */
  readonly shape: string | undefined;
  /** `params["output"]`: the name of the output to return. */
  readonly output: string | undefined;
  /** `params["resume_from"]`: the index of the first token to answer. */
  readonly resumeFrom: number | undefined;
}

/** Parameters of the metadata (`param-NAME`) and of the message, which win. */
export function readParams(
  entry: CatalogEntry,
  metadata: Headers,
  message: Readonly<Record<string, string>> = {},
): RequestParams {
  const params: Record<string, string> = Object.assign(Object.create(null), metadataParams(metadata, entry), message);
  const { shape, output, resume_from: from } = params;
  for (const name of RESERVED_PARAMS) delete params[name];
  return { params, shape, output, resumeFrom: from === undefined ? undefined : parseIndex(from) };
}

function parseIndex(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new ModelError(
    "invalid_argument",
    `Cannot read params["resume_from"]: got ${quote(text)}, wanted the index of a token like "7"`,
  );
}

/** The flat values as the function's input, in the shape that the caller or the function gives. */
export function inputOf(entry: CatalogEntry, values: ArrayLike<number>, shape: string | undefined): NamedTensors {
  const required = entry.input?.some((spec) => !spec.optional) ?? true;
  if (values.length === 0 && shape === undefined && !required) return {};
  const spec = entry.input?.[0];
  const label = tensorLabel("input", spec?.name ?? "0");
  const data = values instanceof Float32Array ? values : new Float32Array(values);
  const value: AnyTensor = { dtype: "float32", shape: shapeOf(data.length, label, shape, spec?.shape), data };
  return nameByPosition(entry.input, [value]);
}

function shapeOf(count: number, label: string, asked: string | undefined, declared: Shape | undefined): Shape {
  const shape = asked === undefined ? declared : parseShape(asked);
  if (shape === undefined) return [count];
  const filled = fillShape(shape, count);
  if (filled) return filled;
  const unknown = shape.filter((dim) => dim === -1).length;
  const why = unknown > 1
    ? `shape [${shape}] has more than one unknown dim; send all of it as params["shape"]`
    : `${count} values do not fill shape [${shape}]`;
  throw new ModelError("invalid_argument", `Cannot shape ${label}: ${why}`);
}

function parseShape(text: string): Shape {
  const dims = text.trim() === ""
    ? []
    : text.split(",").map((dim) => /^\s*(-1|\d{1,15})\s*$/.test(dim) ? Number(dim) : NaN);
  if (dims.length <= 64 && !dims.some(Number.isNaN)) return dims;
  throw new ModelError(
    "invalid_argument",
    `Cannot read params["shape"]: got ${quote(text)}, wanted dims like "1,224,224,3"`,
  );
}

/** Throws `invalid_argument` before the function runs where it is known to have no such output. */
export function checkOutputName(entry: CatalogEntry, name: string | undefined): void {
  if (name === undefined || entry.output === undefined || entry.output.some((spec) => spec.name === name)) return;
  throw noSuchOutput(name, entry.output.map((spec) => spec.name));
}

/** The asked-for output, or the first, as float32. */
export function outputOf(output: NamedTensors, name: string | undefined): Float32Array {
  const chosen = name ?? Object.keys(output)[0];
  const value = chosen === undefined ? undefined : Object.hasOwn(output, chosen) ? output[chosen] : undefined;
  if (value === undefined) {
    if (name !== undefined) throw noSuchOutput(name, Object.keys(output));
    return new Float32Array(0);
  }
  if (value.dtype === "string" || value.dtype === "bytes") {
    throw new ModelError(
      "failed_precondition",
      `Cannot express ${
        tensorLabel("output", chosen!)
      } of dtype "${value.dtype}" as float32: use inference.InferenceService/Predict`,
    );
  }
  return toFloat32(value);
}

function noSuchOutput(name: string, names: readonly string[]): ModelError {
  return new ModelError(
    "invalid_argument",
    `Cannot choose output ${quote(name)}: the function has ${names.map((known) => quote(known)).join(", ")}`,
  );
}
