// What stands for a text where a function declares no tensor for it: a prompt, a message, a token.
import type { CallParams } from "../../core/call.ts";
import type { CatalogEntry } from "../../core/catalog.ts";
import { ModelError } from "../../core/error.ts";
import { type AnyTensor, tensor } from "../../core/tensor.ts";
import type { InputTensor } from "./request.ts";
import { type OutputTensor, toTensor, wireName } from "./tensors.ts";

/** The input that is a text. */
export const TEXT_INPUT = "text_input";
const TEXT_OUTPUT = "text_output";
const PROMPT = "prompt";

/** Whether the input `text_input` is the function's param `prompt`: it declares no tensor, but that. */
export function hasPrompt(entry: CatalogEntry): boolean {
  return entry.input?.length === 0 && entry.params !== undefined && Object.hasOwn(entry.params, PROMPT) &&
    entry.params[PROMPT]!.type === "string";
}

/** The param that the only input of a function with a prompt is. */
export function promptParam(inputs: readonly InputTensor[]): CallParams {
  return inputs.length === 0 ? {} : { [PROMPT]: textOf(inputs) };
}

/** The one text that the inputs are. */
export function textOf(inputs: readonly InputTensor[]): string {
  const [only] = inputs;
  if (only && inputs.length === 1) {
    const { data, shape } = toTensor(only, { name: only.name, dtype: "string" });
    if (data.length === 1) return data[0] as string;
    throw new ModelError(
      "invalid_argument",
      `Cannot accept input "${only.name}": got shape [${shape}], wanted one element: the text`,
    );
  }
  throw new ModelError(
    "invalid_argument",
    `Cannot accept the request: got ${inputs.length} inputs, wanted one of datatype "BYTES": the text`,
  );
}

/** The name of the output that carries tokens and pieces of an answer. */
export function textOutputName({ output }: CatalogEntry): string {
  const [only] = output ?? [];
  return output?.length === 1 && only!.dtype === "string" ? wireName("OUTPUT", only!.name) : TEXT_OUTPUT;
}

/** A token, or a piece of an answer, as an output. */
export function textOutput(entry: CatalogEntry, text: string): OutputTensor {
  return { name: textOutputName(entry), tensor: tensor("string", [text]) as AnyTensor };
}
