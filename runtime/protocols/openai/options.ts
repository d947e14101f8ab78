// What the two endpoints have in common: which function, how long, in which form, and how it is to choose its tokens.
import type { CallParams } from "../../core/call.ts";
import { type CatalogEntry, findEntry } from "../../core/catalog.ts";
import { ModelError, quote } from "../../core/error.ts";
import type { ParamSpecs, ParamValue } from "../../core/spec.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import type { AdapterHost } from "../adapter.ts";
import { fieldOf, scalarOf, unfit } from "./body.ts";
import { badField, modelNotFound, unsuitedModel } from "./error.ts";

/** How an answer is to be given. */
export interface AnswerOptions {
  /** As the caller named it. */
  readonly model: string;
  /** As events. */
  readonly stream: boolean;
  /** With an event that has the usage. */
  readonly includeUsage: boolean;
  /** Texts that end the answer. */
  readonly stop: readonly string[];
  /** The caller's bound on the pieces; undefined = the function's own. */
  readonly maxTokens: number | undefined;
  /** The bound that holds, as far as the runtime knows it. */
  readonly limit: number | undefined;
}

const MAX_STOPS = 4;
const TOKEN_COUNT = { type: "integer", min: 1 } as const;

/** What functions may declare under OpenAI's names, with OpenAI's ranges; a function's own declaration goes before. */
const SAMPLING: ParamSpecs = {
  temperature: { type: "number", min: 0, max: 2 },
  top_p: { type: "number", min: 0, max: 1 },
  frequency_penalty: { type: "number", min: -2, max: 2 },
  presence_penalty: { type: "number", min: -2, max: 2 },
  seed: { type: "integer" },
};

/** Fields that would change what the answer looks like, and the values that ask for nothing. */
const UNSUPPORTED: Readonly<Record<string, readonly string[]>> = {
  n: ["1"],
  best_of: ["1"],
  echo: ["false"],
  suffix: ['""'],
  logprobs: ["false"],
  top_logprobs: ["0"],
  logit_bias: ["{}"],
  tools: ["[]"],
  functions: ["[]"],
  modalities: ['["text"]'],
  response_format: ['{"type":"text"}'],
  web_search_options: [],
};

/** Fields that are no parameters of the function, whatever it declares. */
const OWN_FIELDS: ReadonlySet<string> = new Set([
  ...Object.keys(UNSUPPORTED),
  ..."model messages prompt stream stream_options stop max_tokens max_completion_tokens".split(" "),
]);

/** The function that `model` names. Throws `not_found` or `invalid_argument`. */
export function entryOf(host: AdapterHost, fields: JsonObject, kind: "stream" | "chat"): CatalogEntry {
  const model = modelOf(fields);
  try {
    return findEntry(host.catalog, model, kind, "model");
  } catch (error) {
    if (error instanceof ModelError && error.code === "not_found") throw modelNotFound(error.message);
    if (!(error instanceof ModelError) || error.code !== "unimplemented") throw error;
    const path = kind === "chat" ? "completions" : "chat/completions";
    throw unsuitedModel(`Model ${quote(model)} has no ${kind} handler: try POST /v1/${path}, or another model`);
  }
}

/** How the answer is to be given. Throws `invalid_argument`. */
export function readOptions(fields: JsonObject, entry: CatalogEntry): AnswerOptions {
  refuseUnsupported(fields);
  const stream = scalarOf(fields, "stream", { type: "boolean" }) === true;
  const bounds = ["max_completion_tokens", "max_tokens"].map((name) => scalarOf(fields, name, TOKEN_COUNT));
  const maxTokens = bounds.find((bound) => bound !== undefined) as number | undefined;
  const declared = declaredParam(entry, "max_tokens")?.default;
  return {
    model: modelOf(fields),
    stream,
    includeUsage: readIncludeUsage(fields, stream),
    stop: readStop(fields),
    maxTokens,
    limit: maxTokens ?? (typeof declared === "number" ? declared : undefined),
  };
}

/**
 * The function's parameters: each field with the name of one that it declares. What OpenAI knows and the function does
 * not declare is checked and left out. Throws `invalid_argument`.
 */
export function readParams(fields: JsonObject, entry: CatalogEntry, maxTokens: number | undefined): CallParams {
  const params: Record<string, ParamValue> = Object.create(null);
  for (const [name, spec] of Object.entries({ ...SAMPLING, ...entry.params })) {
    if (OWN_FIELDS.has(name)) continue;
    const value = scalarOf(fields, name, spec);
    if (value === undefined || entry.params && !declaredParam(entry, name)) continue;
    params[name] = entry.params ? value : String(value); // a function without declarations gets texts
  }
  const bound = declaredParam(entry, "max_tokens");
  if (bound && maxTokens !== undefined) params.max_tokens = scalarOf({ max_tokens: maxTokens }, "max_tokens", bound)!;
  return params;
}

/** A parameter that the function declares. */
export function declaredParam({ params }: CatalogEntry, name: string): ParamSpecs[string] | undefined {
  return params && Object.hasOwn(params, name) ? params[name] : undefined;
}

function modelOf(fields: JsonObject): string {
  const model = scalarOf(fields, "model", { type: "string" });
  if (typeof model === "string" && model !== "") return model;
  throw badField("model", "Cannot choose a model: wanted the name of a function as model (GET /v1/models lists them)");
}

function refuseUnsupported(fields: JsonObject): void {
  for (const [name, harmless] of Object.entries(UNSUPPORTED)) {
    const value = fieldOf(fields, name);
    if (value === undefined || harmless.includes(JSON.stringify(value))) continue;
    const wanted = harmless.length > 0 ? `wanted ${harmless.join(" or ")} or nothing` : "wanted nothing";
    throw unfit(name, value, `${wanted}: more is not supported`, "unsupported_value");
  }
}

function readStop(fields: JsonObject): readonly string[] {
  const value = fieldOf(fields, "stop") ?? [];
  const stops = Array.isArray(value) ? value : [value];
  if (stops.length <= MAX_STOPS && stops.every((stop) => typeof stop === "string" && stop !== "")) return stops;
  throw unfit("stop", value, `wanted a text that is not empty, or up to ${MAX_STOPS} of them`);
}

function readIncludeUsage(fields: JsonObject, stream: boolean): boolean {
  const value = fieldOf(fields, "stream_options");
  if (value === undefined) return false;
  if (!isObject(value)) throw unfit("stream_options", value, "wanted an object");
  if (!stream) throw badField("stream_options", 'Cannot accept "stream_options" without "stream": true');
  return scalarOf(value, "include_usage", { type: "boolean" }) === true;
}
