// Answers over HTTP: JSON, with tensors as bytes behind it where the client wants them so.
import { concatBytes } from "../../core/bytes.ts";
import { tensorLabel } from "../../core/check.ts";
import { datatypeOf } from "./datatype.ts";
import { HEADER_LENGTH } from "./http_request.ts";
import type { InferAnswer } from "./infer.ts";
import { encodeJson } from "./json.ts";
import { encodeRaw } from "./raw.ts";
import type { OutputTensor } from "./tensors.ts";

const encoder = new TextEncoder();

/** The response to `infer`. */
export function inferResponse(answer: InferAnswer, isBinary: (output: string) => boolean): Response {
  const tail: Uint8Array[] = [];
  const outputs = answer.outputs.map((output) => {
    if (!isBinary(output.name)) return outputJson(output, `"data":[${elementsOf(output).join(",")}]`);
    const bytes = encodeRaw(output.tensor);
    tail.push(bytes);
    return outputJson(output, `"parameters":{"binary_data_size":${bytes.length}}`);
  });
  const json = encoder.encode(withMember(namesOf(answer), `"outputs":[${outputs.join(",")}]`));
  if (tail.length === 0) return new Response(json, { headers: { "content-type": "application/json" } });
  return new Response(concatBytes([json, ...tail]), {
    headers: { "content-type": "application/octet-stream", [HEADER_LENGTH]: `${json.length}` },
  });
}

/** An answer as `generate` gives it: each output a member, of one element as that element. */
export function generateJson(answer: InferAnswer): string {
  const members = answer.outputs.map((output) => {
    const elements = elementsOf(output);
    return `${JSON.stringify(output.name)}:${elements.length === 1 ? elements[0] : `[${elements.join(",")}]`}`;
  });
  return withMember(namesOf(answer), members.join(","));
}

function namesOf({ id, model, version }: InferAnswer): object {
  return { ...id !== "" && { id: id.toWellFormed() }, model_name: model, model_version: version };
}

// Numbers are written by hand: JSON.stringify() takes no bigint, and would write -0 as 0.
function withMember(object: object, member: string): string {
  const json = JSON.stringify(object);
  return member === "" ? json : `${json.slice(0, -1)},${member}}`;
}

function outputJson({ name, tensor }: OutputTensor, member: string): string {
  return withMember({ name, datatype: datatypeOf(tensor.dtype), shape: tensor.shape }, member);
}

function elementsOf({ name, tensor }: OutputTensor): readonly string[] {
  return encodeJson(tensor, tensorLabel("output", name));
}
