// Inference requests over HTTP: JSON, with the binary extension's tensors behind it.
import type { Catalog, CatalogEntry } from "../../core/catalog.ts";
import { fillShape } from "../../core/check.ts";
import { ELEMENT_BYTES, type FixedDType } from "../../core/dtype.ts";
import { quote } from "../../core/error.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import type { HttpContext } from "../adapter.ts";
import { HttpError, parseJson, readJson } from "../http.ts";
import { datatypeOf } from "./datatype.ts";
import { entryOf } from "./describe.ts";
import { decodeJson, isRounded, keepIntegers } from "./json.ts";
import { NO_PARAMETERS, type Parameters, type ParameterValue } from "./parameters.ts";
import { decodeRaw } from "./raw.ts";
import type { InferRequest, InputTensor, RequestedOutput } from "./request.ts";
import { wireName } from "./tensors.ts";

/** The header that tells how many bytes of a body are JSON; the tensors come after it. */
export const HEADER_LENGTH = "inference-header-content-length";

/** A request, and which of its outputs go out as bytes. */
export interface HttpInferRequest extends InferRequest {
  readonly isBinary: (output: string) => boolean;
}

/** The model and version in a path. */
export function targetOf({ params }: HttpContext): { readonly model: string; readonly version: string } {
  return { model: params["model"] ?? "", version: params["version"] ?? "" };
}

/** Reads the body of an `infer` request. Rejects with a `ModelError`. */
export async function readInferRequest(
  catalog: Catalog,
  request: Request,
  http: HttpContext,
): Promise<HttpInferRequest> {
  const { model, version } = targetOf(http);
  const header = request.headers.get(HEADER_LENGTH);
  if (header === null) return toInferRequest(model, version, await readExactJson(request, http), new Uint8Array());
  const length = /^\d{1,10}$/.test(header) ? Number(header) : NaN;
  const body = await http.readBody();
  if (length === 0) return rawRequest(entryOf(catalog, model, version), version, body);
  if (!(length <= body.length)) {
    throw badRequest(
      `header ${HEADER_LENGTH} is ${quote(header)}, wanted a length of at most ${body.length}, the body's`,
    );
  }
  const json = exactly(body.subarray(0, length), parseJson(body.subarray(0, length)));
  return toInferRequest(model, version, json, body.subarray(length));
}

/** Reads a JSON body whose large integers stay exact. */
export async function readExactJson(request: Request, http: HttpContext): Promise<unknown> {
  let bytes: Uint8Array | undefined;
  const readBody = async () => bytes = await http.readBody();
  const json = await readJson(request, { ...http, readBody });
  return exactly(bytes!, json);
}

// A reviver costs ten times what JSON.parse() does, so it runs only where a number may have been rounded.
function exactly(bytes: Uint8Array, json: unknown): unknown {
  if (!isObject(json)) return json;
  const isInexact = (input: unknown) =>
    isObject(input) && /INT64$/.test(`${input["datatype"]}`) && isRounded(input["data"]);
  const { inputs, parameters } = json;
  const rounded = Array.isArray(inputs) && inputs.some(isInexact) ||
    [parameters, json].some((object) => isObject(object) && Object.values(object).some(isRounded));
  return rounded ? parseJson(bytes, keepIntegers) : json;
}

/** An error that says what is wrong with a request. */
export function badRequest(why: string): HttpError {
  return new HttpError(400, "invalid_argument", `Cannot read the request: ${why}`);
}

function toInferRequest(model: string, version: string, json: unknown, tail: Uint8Array): HttpInferRequest {
  if (!isObject(json)) throw badRequest("the body is no JSON object");
  const binary = { tail, at: 0 };
  const inputs = listOf(json, "inputs").map((input, i) => readInput(input, `inputs[${i}]`, binary));
  if (binary.at < tail.length) {
    throw badRequest(`${tail.length - binary.at} bytes follow those of its inputs (binary_data_size)`);
  }
  const outputs = listOf(json, "outputs").map((output, i): RequestedOutput => ({
    name: textOf(output, "name", `outputs[${i}]`),
    parameters: readParameters(output["parameters"], `outputs[${i}]`),
  }));
  const parameters = readParameters(json["parameters"], "the request");
  const byDefault = parameters.get("binary_data_output") === true;
  const wished = new Map(outputs.map(({ name, parameters }) => [name, parameters.get("binary_data")]));
  return {
    model,
    version,
    id: json["id"] === undefined ? "" : textOf(json, "id", "the request"),
    parameters,
    inputs,
    outputs,
    isBinary: (name) => (wished.get(name) ?? byDefault) === true,
  };
}

interface Binary {
  readonly tail: Uint8Array;
  /** Where the next tensor begins. */
  at: number;
}

function readInput(input: JsonObject, where: string, binary: Binary): InputTensor {
  const parameters = readParameters(input["parameters"], where);
  const tensor = {
    name: textOf(input, "name", where),
    datatype: textOf(input, "datatype", where),
    shape: readShape(input["shape"], where),
    parameters,
  };
  const { data } = input;
  const size = parameters.get("binary_data_size");
  if (size === undefined) {
    const shared = parameters.has("shared_memory_region"); // refused with the other parameters
    if (!Array.isArray(data) && !shared) {
      throw badRequest(`${where}.data is no array, and there is no binary_data_size`);
    }
    return { ...tensor, read: (dtype, count, label) => decodeJson(data as unknown[], dtype, count, label) };
  }
  if (data !== undefined) throw badRequest(`${where} has data and a binary_data_size, wanted one of them`);
  const left = binary.tail.length - binary.at;
  if (typeof size !== "number" || !Number.isInteger(size) || size < 0 || size > left) {
    throw badRequest(`${where}'s binary_data_size is ${size}, ${left} bytes are left behind the JSON`);
  }
  const content = binary.tail.subarray(binary.at, binary.at += size);
  return { ...tensor, read: (dtype, count, label) => decodeRaw({ content, headerBytes: 0 }, dtype, count, label) };
}

// The body is the one tensor of a function that has one; its dims but one are declared.
function rawRequest(entry: CatalogEntry, version: string, content: Uint8Array): HttpInferRequest {
  const [spec] = entry.input ?? [];
  if (entry.input?.length !== 1 || spec!.dtype === "any") {
    throw badRequest(`${HEADER_LENGTH} is 0, but function "${entry.name}" does not declare one input with a dtype`);
  }
  const { name, dtype, shape: declared = [-1] } = spec!;
  const isText = dtype === "string" || dtype === "bytes";
  const count = isText ? 1 : content.length / ELEMENT_BYTES[dtype as FixedDType];
  const shape = fillShape(declared, count);
  if (!shape || !Number.isInteger(count)) {
    throw badRequest(`a body of ${content.length} bytes does not fill ${datatypeOf(dtype)}[${declared}]`);
  }
  const text = new Uint8Array(isText ? content.length + 4 : 0);
  if (isText) {
    new DataView(text.buffer).setUint32(0, content.length, true);
    text.set(content, 4);
  }
  const read: InputTensor["read"] = (dtype, count, label) =>
    decodeRaw({ content: isText ? text : content, headerBytes: 0 }, dtype, count, label);
  const input = { name: wireName("INPUT", name), datatype: datatypeOf(dtype), shape, parameters: NO_PARAMETERS, read };
  const { name: model } = entry;
  return {
    ...{ model, version, id: "", parameters: NO_PARAMETERS, inputs: [input], outputs: [] },
    isBinary: () => true,
  };
}

/** Parameters as JSON has them: texts, numbers, true and false. */
export function readParameters(json: unknown, where: string): Parameters {
  if (json === undefined) return NO_PARAMETERS;
  if (!isObject(json)) throw badRequest(`parameters of ${where} are no JSON object`);
  const parameters = new Map<string, ParameterValue>();
  for (const [name, value] of Object.entries(json)) {
    if (!isParameter(value)) throw badRequest(`parameter ${quote(name)} of ${where} is no text, number, true or false`);
    parameters.set(name, value);
  }
  return parameters;
}

/** Whether a value can be a parameter's. */
export function isParameter(value: unknown): value is ParameterValue {
  return ["string", "number", "bigint", "boolean"].includes(typeof value);
}

function readShape(json: unknown, where: string): readonly number[] {
  if (Array.isArray(json) && json.every((dim) => Number.isSafeInteger(dim))) return json;
  throw badRequest(`${where}.shape is no array of whole numbers`);
}

function listOf(json: JsonObject, key: string): readonly JsonObject[] {
  const list = json[key] ?? [];
  if (Array.isArray(list) && list.every(isObject)) return list;
  throw badRequest(`${key} is no array of objects`);
}

function textOf(json: JsonObject, key: string, where: string): string {
  const text = json[key];
  if (typeof text === "string") return text;
  throw badRequest(`${key} of ${where} is no text`);
}
