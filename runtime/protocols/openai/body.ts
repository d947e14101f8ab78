// Fields of a request's JSON body. `null` is a field that is left out, as with OpenAI.
import { ModelError, quote } from "../../core/error.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import { paramProblem, type ParamSpec, type ParamValue } from "../../core/spec.ts";
import type { HttpContext } from "../adapter.ts";
import { readJson } from "../http.ts";
import { badField } from "./error.ts";

/** The body of a request as an object. Rejects with a `ModelError` where it is none. */
export async function readFields(request: Request, http: HttpContext): Promise<JsonObject> {
  const body = await readJson(request, http);
  if (isObject(body)) return body;
  throw new ModelError("invalid_argument", `Cannot read the body: got ${shown(body)}, wanted a JSON object`);
}

/** A field's value, or undefined. */
export function fieldOf(fields: JsonObject, name: string): unknown {
  return Object.hasOwn(fields, name) ? fields[name] ?? undefined : undefined;
}

/** A scalar field, or undefined. Throws `invalid_argument` for another type or a value out of range. */
export function scalarOf(fields: JsonObject, name: string, spec: ParamSpec): ParamValue | undefined {
  const value = fieldOf(fields, name);
  if (value === undefined) return undefined;
  const type: string = typeof value;
  if (type !== (spec.type === "integer" ? "number" : spec.type)) {
    throw unfit(name, value, `wanted ${article(spec.type)} ${spec.type}`);
  }
  const problem = paramProblem(spec, value as ParamValue);
  if (problem !== undefined) throw unfit(name, value, problem);
  return value as ParamValue;
}

/** A field cannot be read: what was got and what was `wanted ...`. */
export function unfit(name: string, value: unknown, wanted: string, code?: string): ModelError {
  return badField(name, `Cannot accept ${quote(name)}: got ${shown(value)}, ${wanted}`, code);
}

function shown(value: unknown): string {
  const json = JSON.stringify(value) ?? "nothing";
  return json.length > 100 ? `${json.slice(0, 100)}…` : json;
}

function article(type: string): string {
  return type === "integer" ? "an" : "a";
}
