// What an inference request says, whatever brings it, and how inference.ModelInferRequest brings it.
import { concatBytes } from "../../core/bytes.ts";
import type { DType } from "../../core/dtype.ts";
import { ModelError, quote } from "../../core/error.ts";
import type { AnyTensor } from "../../core/tensor.ts";
import { decodeContents } from "./contents.ts";
import type { Parameters, ParameterValue } from "./parameters.ts";
import { decodeRaw } from "./raw.ts";
import { readFields, signedVarintOf, splitVarints, textOf, varintOf, type WireField } from "./wire.ts";

/** A tensor as it was sent. */
export interface InputTensor {
  readonly name: string;
  readonly datatype: string;
  readonly shape: readonly number[];
  readonly parameters: Parameters;
  /** Reads its elements, `count` of them, once it is known what they are. Throws `invalid_argument`. */
  readonly read: (dtype: DType, count: number, label: string) => AnyTensor["data"];
}

/** An output that is asked for. */
export interface RequestedOutput {
  readonly name: string;
  readonly parameters: Parameters;
}

/** One request for an inference. */
export interface InferRequest {
  readonly model: string;
  /** "" = the server's choice. */
  readonly version: string;
  /** Echoed. */
  readonly id: string;
  readonly parameters: Parameters;
  readonly inputs: readonly InputTensor[];
  /** None = all. */
  readonly outputs: readonly RequestedOutput[];
}

/** A request that came as a `ModelInferRequest`. */
export interface InferMessage extends InferRequest {
  /** Its tensors came as `contents`, so the answer's go out so. */
  readonly typed: boolean;
}

/** Reads a `ModelInferRequest` that is well formed; the bytes are the request's from then on. */
export function decodeInferRequest(message: Uint8Array): InferMessage {
  let model = "", version = "", id = "";
  const parameters = new Map<string, ParameterValue>();
  const tensors: SentTensor[] = [];
  const outputs: RequestedOutput[] = [];
  const raw: WireField[] = [];
  for (const field of readFields(message)) {
    const { number, content } = field;
    if (number === 1) model = textOf(content);
    else if (number === 2) version = textOf(content);
    else if (number === 3) id = textOf(content);
    else if (number === 4) readParameter(content, parameters);
    else if (number === 5) tensors.push(readTensor(content));
    else if (number === 6) outputs.push(readRequestedOutput(content));
    else if (number === 7) raw.push(field);
  }
  checkForms(tensors, raw);
  const inputs = tensors.map(({ contents, ...tensor }, i): InputTensor => {
    const rawField = raw[i];
    const read: InputTensor["read"] = rawField
      ? (dtype, count, label) => decodeRaw(rawField, dtype, count, label)
      : (dtype, count, label) => decodeContents(concatBytes(contents), dtype, count, label);
    return { ...tensor, read };
  });
  return { model, version, id, parameters, inputs, outputs, typed: inputs.length > 0 && raw.length === 0 };
}

interface SentTensor extends Omit<InputTensor, "read"> {
  /** Encoded; end to end they are one message. */
  readonly contents: readonly Uint8Array[];
}

function checkForms(tensors: readonly SentTensor[], raw: readonly WireField[]): void {
  if (raw.length === 0) return;
  const mixed = tensors.find(({ contents }) => contents.length > 0);
  if (mixed) {
    throw new ModelError(
      "invalid_argument",
      `Cannot read input ${quote(mixed.name)}: contents must not be specified when using raw_input_contents`,
    );
  }
  if (raw.length === tensors.length) return;
  throw new ModelError(
    "invalid_argument",
    `Cannot read the inputs: got ${raw.length} raw_input_contents for ${tensors.length} inputs, wanted one for each`,
  );
}

function readTensor(message: Uint8Array): SentTensor {
  let name = "", datatype = "";
  const shape: number[] = [];
  const parameters = new Map<string, ParameterValue>();
  const contents: Uint8Array[] = [];
  for (const { number, wireType, content } of readFields(message)) {
    if (number === 1) name = textOf(content);
    else if (number === 2) datatype = textOf(content);
    else if (number === 3) {
      for (const dim of wireType === 2 ? splitVarints(content) : [content]) shape.push(dimOf(dim));
    } else if (number === 4) readParameter(content, parameters);
    else if (number === 5) contents.push(content);
  }
  return { name, datatype, shape, parameters, contents };
}

function dimOf(content: Uint8Array): number {
  return Number(signedVarintOf(content));
}

function readRequestedOutput(message: Uint8Array): RequestedOutput {
  let name = "";
  const parameters = new Map<string, ParameterValue>();
  for (const { number, content } of readFields(message)) {
    if (number === 1) name = textOf(content);
    else if (number === 2) readParameter(content, parameters);
  }
  return { name, parameters };
}

// An entry of a map from names to InferParameter.
function readParameter(message: Uint8Array, parameters: Map<string, ParameterValue>): void {
  let name = "";
  let value: ParameterValue | undefined;
  for (const { number, content } of readFields(message)) {
    if (number === 1) name = textOf(content);
    else if (number === 2) value = readParameterValue(content) ?? value; // messages merge
  }
  if (value === undefined) throw new ModelError("invalid_argument", `Cannot read parameter ${quote(name)}: no value`);
  parameters.set(name, value);
}

// The last one is the one that counts.
function readParameterValue(message: Uint8Array): ParameterValue | undefined {
  let value: ParameterValue | undefined;
  for (const { number, content } of readFields(message)) {
    if (number === 1) value = varintOf(content) !== 0n;
    else if (number === 2) value = signedVarintOf(content);
    else if (number === 3) value = textOf(content);
    else if (number === 4) value = new DataView(content.buffer, content.byteOffset).getFloat64(0, true);
    else if (number === 5) value = varintOf(content);
  }
  return value;
}
