// JSON that keeps what numbers are: `1` is a whole number of any size, `1.0` and `1e3` are not.
import { ModelError, quote } from "../core/error.ts";
import { isObject } from "../core/json.ts";

/** What a JSON text says; whole numbers are `bigint`. */
export type Json = null | boolean | bigint | number | string | readonly Json[] | JsonObject;

/** A JSON object. */
export interface JsonObject {
  readonly [name: string]: Json;
}

// TypeScript does not know the third argument yet.
type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;
const keepWhole: Reviver = (_key, value, { source }) =>
  typeof value === "number" && /^-?\d+$/.test(source!) && source !== "-0" ? BigInt(source!) : value;

/** Reads a JSON text; throws `invalid_argument`, and `label` says where the text is from. */
export function parseJson(text: string, label: string): Json {
  try {
    return JSON.parse(text, keepWhole as (key: string, value: unknown) => unknown);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new ModelError("invalid_argument", `Cannot read ${label} as JSON: ${reason(error)}`);
  }
}

// V8 quotes the text, with its lines.
function reason({ message }: SyntaxError): string {
  const brief = message.replace(/, (\.\.\.)?".*$/s, "").replace(/ in JSON( at position.*)?$/, "$1");
  return brief.slice(0, 1).toLowerCase() + brief.slice(1);
}

/** Whether `value` is an object rather than an array or a scalar. */
export function isJsonObject(value: Json): value is JsonObject {
  return isObject(value);
}

/** How error texts name a value. */
export function describeJson(value: Json): string {
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (isJsonObject(value)) return "an object";
  return typeof value === "string" ? quote(value, 40) : String(value);
}

/** A text as JSON, in ASCII where a character could change what a terminal shows. */
export function quoteJson(text: string): string {
  return JSON.stringify(text).replaceAll(
    /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
