// Triton's generate and generate_stream: inputs and parameters are members of one JSON object.
import type { CatalogEntry } from "../../core/catalog.ts";
import { fillShape } from "../../core/check.ts";
import type { DType } from "../../core/dtype.ts";
import { ModelError, quote, toModelError } from "../../core/error.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import type { AdapterHost, HttpContext } from "../adapter.ts";
import { eventStream, started } from "../http.ts";
import { withTurns } from "../turns.ts";
import { datatypeOf } from "./datatype.ts";
import { entryOf } from "./describe.ts";
import { badRequest, isParameter, readExactJson, readParameters, targetOf } from "./http_request.ts";
import { generateJson } from "./http_response.ts";
import { infer, type InferAnswer } from "./infer.ts";
import { decodeJson } from "./json.ts";
import { NO_PARAMETERS, type ParameterValue } from "./parameters.ts";
import type { InferRequest, InputTensor } from "./request.ts";
import { wireName } from "./tensors.ts";
import { hasPrompt, TEXT_INPUT, textOutput, textOutputName } from "./text.ts";

/** `generate`: one answer; the tokens of a stream are joined. */
export async function generate(host: AdapterHost, request: Request, http: HttpContext): Promise<Response> {
  const asked = await read(host, request, http);
  const mode = asked.entry.kinds.includes("predict") ? "one" : "many";
  const answer = await joined(infer(host, asked.asked, http, mode), asked, http.maxMessageBytes);
  return new Response(generateJson(answer), { headers: { "content-type": "application/json" } });
}

/** `generate_stream`: an event for each answer. What fails before the first one has a status of its own. */
export async function generateStream(host: AdapterHost, request: Request, http: HttpContext): Promise<Response> {
  const { asked } = await read(host, request, http);
  return eventStream(await started(events(infer(host, asked, http, "many"), http.id)));
}

async function* events(
  answers: AsyncIterable<InferAnswer, void, undefined>,
  requestId: string,
): AsyncGenerator<string, void, undefined> {
  let begun = false;
  try {
    for await (const answer of answers) {
      begun = true;
      yield generateJson(answer);
    }
  } catch (thrown) {
    if (!begun) throw thrown;
    yield JSON.stringify({ error: toModelError(thrown, requestId).message.toWellFormed() });
  }
}

// Tokens become one text; several answers of tensors are nothing that one answer could be.
async function joined(
  answers: AsyncIterable<InferAnswer, void, undefined>,
  { entry, asked }: Asked,
  maxBytes: number,
): Promise<InferAnswer> {
  let text = "";
  let only: InferAnswer | undefined;
  for await (const answer of withTurns(answers)) {
    const token = tokenOf(answer, entry);
    if (only || text !== "" && token === undefined) {
      throw unfit(entry, "gave several answers, which generate cannot join: use generate_stream");
    }
    if (token === undefined) only = answer;
    else text += token;
    if (text.length > maxBytes) {
      const why = `takes more than ${maxBytes} bytes (option maxMessageBytes)`;
      throw unfit(entry, `gave an answer that ${why}: bound it by max_tokens, or use generate_stream`);
    }
  }
  const { name: model, version } = entry;
  return only ?? { model, version, id: asked.id, outputs: [textOutput(entry, text)], final: true };
}

function tokenOf({ outputs: [output, ...others] }: InferAnswer, entry: CatalogEntry): string | undefined {
  if (!output || others.length > 0 || output.name !== textOutputName(entry)) return undefined;
  const { dtype, data } = output.tensor;
  return dtype === "string" && data.length === 1 ? data[0] : undefined;
}

function unfit({ name }: CatalogEntry, why: string): ModelError {
  return new ModelError("failed_precondition", `Function "${name}" ${why}`);
}

interface Asked {
  readonly entry: CatalogEntry;
  readonly asked: InferRequest;
}

async function read({ catalog }: AdapterHost, request: Request, http: HttpContext): Promise<Asked> {
  const { model, version } = targetOf(http);
  const entry = entryOf(catalog, model, version);
  const json = await readExactJson(request, http);
  if (!isObject(json)) throw badRequest("the body is no JSON object");
  const inputs: InputTensor[] = [];
  const parameters = new Map<string, ParameterValue>(readParameters(json["parameters"], "the request"));
  for (const [key, value] of Object.entries(json)) {
    if (["id", "parameters", "stream"].includes(key)) continue;
    const input = inputOf(entry, key, value);
    if (input) inputs.push(input);
    else if (isParameter(value)) parameters.set(key, value);
    else throw badRequest(`${quote(key)} is no input of "${entry.name}", and no text, number, true or false`);
  }
  return { entry, asked: { model, version, id: readId(json), parameters, inputs, outputs: [] } };
}

function readId({ id = "" }: JsonObject): string {
  if (typeof id === "string") return id;
  throw badRequest("id of the request is no text");
}

// The declared input of that name; text_input is also the prompt, the message, or the only text that is declared.
function inputOf(entry: CatalogEntry, key: string, value: unknown): InputTensor | undefined {
  const specs = entry.input ?? [];
  const declared = specs.find(({ name }) => wireName("INPUT", name) === key);
  if (declared) return toInput(key, value, declared.dtype, declared.shape);
  if (key !== TEXT_INPUT) return undefined;
  if (hasPrompt(entry) || specs.length === 0) return toInput(key, value, "string", [1]);
  const texts = specs.filter(({ dtype }) => dtype === "string");
  if (texts.length !== 1) return undefined;
  return toInput(wireName("INPUT", texts[0]!.name), value, "string", texts[0]!.shape);
}

function toInput(name: string, value: unknown, dtype: DType | "any", declared: readonly number[] = [-1]): InputTensor {
  const values = (Array.isArray(value) ? value.flat(Infinity) : [value]) as unknown[];
  const shape = fillShape(declared, values.length) ?? [values.length];
  const datatype = dtype === "any" ? likeliest(values[0]) : datatypeOf(dtype);
  return {
    ...{ name, datatype, shape, parameters: NO_PARAMETERS },
    read: (dtype, count, label) => decodeJson(values, dtype, count, label),
  };
}

function likeliest(value: unknown): string {
  return typeof value === "string" ? "BYTES" : typeof value === "boolean" ? "BOOL" : "FP64";
}
