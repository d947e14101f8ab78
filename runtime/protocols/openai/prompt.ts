// How a function takes the text of a completion.
import type { CallParams } from "../../core/call.ts";
import type { CatalogEntry } from "../../core/catalog.ts";
import { fillShape } from "../../core/check.ts";
import { quote } from "../../core/error.ts";
import type { NamedTensors } from "../../core/tensor.ts";
import type { JsonObject } from "../../core/json.ts";
import { fieldOf, unfit } from "./body.ts";
import { unsuitedModel } from "./error.ts";
import { declaredParam } from "./options.ts";

/** A prompt as a part of a call. */
export interface PromptInput {
  readonly input: NamedTensors;
  readonly params: CallParams;
}

/** The text to continue; none is an empty one. Throws `invalid_argument`. */
export function readPrompt(fields: JsonObject): string {
  const value = fieldOf(fields, "prompt") ?? "";
  const only = Array.isArray(value) && value.length === 1 ? value[0] : value;
  if (typeof only === "string") return only;
  throw unfit("prompt", value, "wanted one text: several, and tokens, are not supported");
}

/**
 * The prompt as the function takes it: as its param `prompt`, else as its only required tensor, of dtype string. A
 * function without declarations gets the param. Throws `invalid_argument` for one that takes or gives no text.
 */
export function promptInput(entry: CatalogEntry, prompt: string): PromptInput {
  const [output, ...others] = entry.output ?? [];
  const givesText = output === undefined || others.length === 0 && isText(output.dtype);
  const required = entry.input?.filter((spec) => !spec.optional) ?? [];
  const [tensor, ...more] = required;
  if (givesText && declaredParam(entry, "prompt")?.type === "string" && !tensor) {
    return { input: {}, params: { prompt } };
  }
  const shape = tensor && fillShape(tensor.shape ?? [-1], 1);
  if (givesText && tensor && more.length === 0 && tensor.dtype === "string" && shape) {
    return { input: { [tensor.name]: { dtype: "string", shape, data: [prompt] } }, params: {} };
  }
  if (givesText && !entry.params && !tensor) return { input: {}, params: { prompt } };
  throw unsuitedModel(
    `Model ${
      quote(entry.name)
    } cannot complete a text: wanted a function with a string param "prompt", or one tensor ` +
      "of dtype string, that answers with text",
  );
}

function isText(dtype: string): boolean {
  return dtype === "string" || dtype === "any";
}
