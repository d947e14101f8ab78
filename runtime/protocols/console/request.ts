// What the console's pages send.
import type { CallParams } from "../../core/call.ts";
import { nameBySender } from "../../core/check.ts";
import type { CatalogEntry } from "../../core/catalog.ts";
import { ModelError } from "../../core/error.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import type { NamedTensors } from "../../core/tensor.ts";
import { tensorFromJson } from "./tensor.ts";

/** A call of a function. */
export interface CallRequest {
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly params: CallParams;
}

/** A turn of a conversation. */
export interface ChatRequest {
  readonly sessionId: string;
  readonly content: string;
  readonly params: CallParams;
}

const MAX_SESSION_ID_LENGTH = 256;

/** Reads `{"inputs": {NAME: TENSOR}, "params": {NAME: VALUE}}`. Throws `invalid_argument`. */
export function readCall(body: unknown): CallRequest {
  const { inputs = {}, params = {} } = object(body, "the body");
  return { inputs: object(inputs, "inputs"), params: readParams(params) };
}

/** Reads `{"sessionId": ID, "content": TEXT, "params": {NAME: VALUE}}`. Throws `invalid_argument`. */
export function readChat(body: unknown): ChatRequest {
  const { sessionId, content, params = {} } = object(body, "the body");
  if (typeof sessionId !== "string" || sessionId === "" || sessionId.length > MAX_SESSION_ID_LENGTH) {
    throw refuse("sessionId", `wanted a text of 1 to ${MAX_SESSION_ID_LENGTH} characters`);
  }
  if (typeof content !== "string" || content === "") throw refuse("content", "wanted a text that is not empty");
  return { sessionId, content, params: readParams(params) };
}

/** The tensors of a call, by the names of the declaration. Throws `invalid_argument`. */
export function inputOf(entry: CatalogEntry, { inputs }: CallRequest): NamedTensors {
  const names = Object.keys(inputs);
  return nameBySender(entry.input, names, names.map((name) => tensorFromJson(inputs[name], `input "${name}"`)));
}

function readParams(value: unknown): CallParams {
  const params = object(value, "params");
  for (const [name, param] of Object.entries(params)) {
    if (!["number", "string", "boolean"].includes(typeof param)) {
      throw refuse(`params["${name}"]`, "wanted a number, a text or a boolean");
    }
  }
  return params as CallParams;
}

function object(value: unknown, label: string): JsonObject {
  if (isObject(value)) return value;
  throw refuse(label, "wanted an object");
}

function refuse(label: string, wanted: string): ModelError {
  return new ModelError("invalid_argument", `Cannot read ${label}: ${wanted}`);
}
