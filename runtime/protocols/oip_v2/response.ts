// inference.ModelInferResponse from an answer. Large tensors are written once.
import { withField } from "../parts.ts";
import { encodeContents, isTypable } from "./contents.ts";
import { datatypeOf } from "./datatype.ts";
import type { InferAnswer } from "./infer.ts";
import { encodeRaw } from "./raw.ts";
import type { OutputTensor } from "./tensors.ts";
import { packedField, textField } from "./wire.ts";

/** The parts of a `ModelInferResponse`; `typed` tensors only where every datatype can be. */
export function encodeAnswer(
  { model, version, id, outputs }: InferAnswer,
  typed: boolean,
  flags: Readonly<Record<string, boolean>> = {},
): readonly Uint8Array[] {
  const inContents = typed && outputs.every(({ tensor }) => isTypable(tensor.dtype));
  return [
    ...textField(1, model),
    ...textField(2, version),
    ...textField(3, id),
    ...Object.entries(flags).flatMap(([name, value]) => parameterField(4, name, value)),
    ...outputs.flatMap((output) => withField([], 5, tensorParts(output, inContents))),
    ...inContents ? [] : outputs.flatMap(({ tensor }) => withField([], 6, [encodeRaw(tensor)])),
  ];
}

function tensorParts({ name, tensor }: OutputTensor, inContents: boolean): readonly Uint8Array[] {
  const parts = [
    ...textField(1, name),
    ...textField(2, datatypeOf(tensor.dtype)),
    ...packedField(3, tensor.shape),
  ];
  return inContents ? withField(parts, 5, encodeContents(tensor)) : parts;
}

function parameterField(number: number, name: string, value: boolean): readonly Uint8Array[] {
  const parameter = Uint8Array.of(8, value ? 1 : 0); // bool_param
  return withField([], number, withField(textField(1, name), 2, [parameter]));
}
