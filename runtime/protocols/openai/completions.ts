// POST /v1/completions: a text to continue is a stream call.
import { type AdapterHost, callBase, type HttpContext } from "../adapter.ts";
import { answer, type AnswerForm } from "./answer.ts";
import { readFields } from "./body.ts";
import { generate } from "./generate.ts";
import { entryOf, readOptions, readParams } from "./options.ts";
import { promptInput, readPrompt } from "./prompt.ts";

const FORM: AnswerForm = {
  idPrefix: "cmpl",
  object: "text_completion",
  chunkObject: "text_completion",
  whole: (text) => ({ text }),
  chunk: (text) => ({ text }),
};

/** Answers `POST /v1/completions`. */
export async function complete(host: AdapterHost, request: Request, http: HttpContext): Promise<Response> {
  const fields = await readFields(request, http);
  const entry = entryOf(host, fields, "stream");
  const options = readOptions(fields, entry);
  const prompt = promptInput(entry, readPrompt(fields));
  const params = { ...readParams(fields, entry, options.maxTokens), ...prompt.params };
  const base = callBase(http, entry, params, options.maxTokens);
  const call = { ...base, kind: "stream", input: prompt.input } as const;
  return await answer(generate(host, call, options), http, options, FORM);
}
