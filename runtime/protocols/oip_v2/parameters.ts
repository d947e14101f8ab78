// Parameters of a request: those that the protocol itself reads, and those for the function.
import type { CallParams } from "../../core/call.ts";
import type { CatalogEntry } from "../../core/catalog.ts";
import { ModelError, quote } from "../../core/error.ts";
import type { ParamValue } from "../../core/spec.ts";

/** A parameter's value; integers of the wire are exact. */
export type ParameterValue = string | number | boolean | bigint;
/** Parameters by name. */
export type Parameters = ReadonlyMap<string, ParameterValue>;

/** No parameters. */
export const NO_PARAMETERS: Parameters = new Map();

const PROTOCOL = new Set(["sequence_id", "sequence_start", "sequence_end", "binary_data_output"]);
/** Triton's hints to its scheduler: taken and left out, unless a function has a param of the name. */
const HINTS = new Set(["priority", "timeout", "headers"]);
const MAX_TOKENS = "max_tokens";

/** Parameters as a function gets them; those of the metadata come first. */
export function callParams(parameters: Parameters, entry: CatalogEntry, metadata: CallParams): CallParams {
  const params: Record<string, ParamValue> = Object.assign(Object.create(null), metadata);
  for (const [name, value] of parameters) {
    const declared = entry.params !== undefined && Object.hasOwn(entry.params, name);
    if (PROTOCOL.has(name) || name.startsWith("triton_")) continue;
    if ((HINTS.has(name) || name === MAX_TOKENS) && !declared) continue;
    const plain = typeof value === "bigint" ? plainInteger(value) : value;
    params[name] = entry.params === undefined ? String(plain) : plain; // without declarations params are texts
  }
  return params;
}

// One that a number would not hold stays exact as a text, which a declared param refuses.
function plainInteger(value: bigint): number | string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : `${value}`;
}

/** The bound on a stream's chunks, for a function that declares no param of that name; 0 = none. */
export function maxTokensOf(parameters: Parameters, entry: CatalogEntry): number {
  const value = parameters.get(MAX_TOKENS);
  if (value === undefined || (entry.params !== undefined && Object.hasOwn(entry.params, MAX_TOKENS))) return 0;
  const number = typeof value === "bigint" ? Number(value) : value;
  if (typeof number === "number" && Number.isSafeInteger(number) && number >= 0) return number;
  throw badParameter(MAX_TOKENS, value, "wanted a whole number from 0");
}

/** A parameter that is true or false; false where it was not sent. */
export function flagOf(parameters: Parameters, name: string): boolean {
  const value = parameters.get(name) ?? false;
  if (typeof value === "boolean") return value;
  throw badParameter(name, value, "wanted true or false");
}

/** A parameter that cannot be what it is meant to be. */
export function badParameter(name: string, value: ParameterValue, wanted: string): ModelError {
  return new ModelError("invalid_argument", `Cannot read parameter "${name}": got ${quote(String(value))}, ${wanted}`);
}
