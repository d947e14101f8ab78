// A request's tensors as a function's input, and its output as tensors with names.
import type { CatalogEntry } from "../../core/catalog.ts";
import { nameBySender, tensorLabel } from "../../core/check.ts";
import { ModelError, quote } from "../../core/error.ts";
import type { NamedSpec } from "../../core/spec.ts";
import { type AnyTensor, elementCount, type NamedTensors } from "../../core/tensor.ts";
import { parseDatatype } from "./datatype.ts";
import type { InputTensor, RequestedOutput } from "./request.ts";

/** A tensor of an answer. */
export interface OutputTensor {
  readonly name: string;
  readonly tensor: AnyTensor;
}

const MAX_RANK = 64;
const UNSUPPORTED: Readonly<Record<string, string>> = {
  shared_memory_region: "shared memory",
  classification: "the classification extension",
};

/** The name of a tensor that is declared without one, or not at all: `INPUT__0`. */
export function wireName(direction: "INPUT" | "OUTPUT", name: string): string {
  return /^\d+$/.test(name) ? `${direction}__${name}` : name;
}

/** The inputs as the function declares them; by position where it declares no names. */
export function toNamedTensors(entry: CatalogEntry, inputs: readonly InputTensor[]): NamedTensors {
  const sent = inPosition(inputs);
  const hasNames = entry.input !== undefined && entry.input.every(({ name }) => name !== "0");
  const tensors = sent.map((input, i) => {
    const spec = hasNames ? entry.input!.find(({ name }) => name === input.name) : entry.input?.[i];
    return toTensor(input, spec);
  });
  return nameBySender(entry.input, sent.map(({ name }) => name), tensors);
}

// INPUT__1 may come before INPUT__0.
function inPosition(inputs: readonly InputTensor[]): readonly InputTensor[] {
  const positions = inputs.map(({ name }) => /^INPUT__(\d{1,4})$/.exec(name)?.[1]);
  if (positions.includes(undefined)) return inputs;
  const wrong = inputs.find((_, i) => !positions.includes(`${i}`));
  if (wrong) {
    const got = inputs.map(({ name }) => name).join(", ");
    throw new ModelError("invalid_argument", `Cannot accept the inputs: got ${got}, wanted INPUT__0 and so on`);
  }
  return inputs.toSorted((a, b) => Number(a.name.slice(7)) - Number(b.name.slice(7)));
}

/** One tensor as it was sent; `spec` is what the function declares of it. */
export function toTensor(input: InputTensor, spec: NamedSpec | undefined): AnyTensor {
  const label = tensorLabel("input", input.name);
  refuseUnsupported(input, label);
  const dtype = parseDatatype(input.datatype, spec?.dtype, label);
  const { shape } = input;
  const count = shape.length > MAX_RANK || shape.some((dim) => dim < 0) ? undefined : elementCount(shape);
  if (count === undefined) {
    const got = shape.length > MAX_RANK ? `${shape.length} dims` : `[${shape}]`;
    throw new ModelError(
      "invalid_argument",
      `Cannot read ${label}: shape is ${got}, wanted at most ${MAX_RANK} dims from 0, and elements that can be counted`,
    );
  }
  return { dtype, shape, data: input.read(dtype, count, label), sentAs: input.datatype } as AnyTensor;
}

/** Throws `invalid_argument` for outputs that a function is known not to have, before it runs. */
export function checkOutputs(entry: CatalogEntry, requested: readonly RequestedOutput[]): void {
  for (const output of requested) {
    refuseUnsupported(output, tensorLabel("output", output.name));
    const known = entry.output?.map(({ name }) => wireName("OUTPUT", name));
    if (known && !known.includes(output.name)) throw noSuchOutput(entry.name, output.name, known);
  }
}

/** The outputs that were asked for, in that order; all where none was. */
export function selectOutputs(
  model: string,
  outputs: readonly OutputTensor[],
  requested: readonly RequestedOutput[],
): readonly OutputTensor[] {
  if (requested.length === 0) return outputs;
  return requested.map(({ name }) => {
    const found = outputs.find((output) => output.name === name);
    if (found) return found;
    throw noSuchOutput(model, name, outputs.map((output) => output.name));
  });
}

/** A function's output with the names of the wire. */
export function toOutputs(output: NamedTensors): readonly OutputTensor[] {
  return Object.entries(output).map(([name, tensor]) => ({ name: wireName("OUTPUT", name), tensor }));
}

function refuseUnsupported({ parameters }: RequestedOutput, label: string): void {
  for (const name of parameters.keys()) {
    if (!Object.hasOwn(UNSUPPORTED, name)) continue;
    throw new ModelError(
      "invalid_argument",
      `Cannot serve ${label}: ${UNSUPPORTED[name]} (parameter "${name}") is not supported`,
    );
  }
}

function noSuchOutput(model: string, name: string, known: readonly string[]): ModelError {
  return new ModelError(
    "invalid_argument",
    `unexpected inference output ${quote(name)} for model "${model}", it has ${
      known.map((each) => quote(each)).join(", ")
    }`,
  );
}
