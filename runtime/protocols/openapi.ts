// What protocols describe their routes with, and how what they say becomes one.
import type { OpenApiPart } from "./adapter.ts";

/** A text. */
export const TEXT = { type: "string" };
/** True or false. */
export const FLAG = { type: "boolean" };
/** How many. */
export const COUNT = { type: "integer", minimum: 0 };

/** A schema of the document, by its name. */
export const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
/** Content that is JSON. */
export const json = (schema: object) => ({ content: { "application/json": { schema } } });
/** An array. */
export const list = (items: object, more: object = {}) => ({ type: "array", items, ...more });
/** An object, which may have other members too. */
export const object = (
  required: Readonly<Record<string, object>>,
  optional: Readonly<Record<string, object>> = {},
) => ({
  type: "object",
  properties: { ...required, ...optional },
  ...Object.keys(required).length > 0 && { required: Object.keys(required) },
});
/** A value, or null. */
export const nullable = (schema: object) => ({ anyOf: [schema, { type: "null" }] });
/** One of some values. */
export const only = (...values: readonly unknown[]) => ({ enum: values });

const RETRY_AFTER = { headers: { "Retry-After": { description: "Seconds", schema: COUNT } } };

/** What a route may fail with. */
const FAILURES = {
  400: { description: "It cannot be read, or does not suit the function" },
  404: { description: "There is no such function, or version" },
  409: { description: "It was aborted" },
  413: { description: "The body is too large" },
  415: { description: "The body's Content-Type or Content-Encoding is another one" },
  429: { description: "There are too many calls", ...RETRY_AFTER },
  500: { description: "The function failed" },
  501: { description: "The function has no handler for it" },
  503: { description: "The function cannot be called now", ...RETRY_AFTER },
  504: { description: "It took too long" },
  default: { description: "What else the function says" },
} as const;

/** A status that a route may fail with; `default`: any. */
export type Failure = keyof typeof FAILURES;

/** What looks for a function fails with. */
export const LOOKING: readonly Failure[] = [400, 404];
/** What reads a JSON body fails with. */
export const READING: readonly Failure[] = [400, 413, 415];
/** What calls a function fails with. */
export const CALLING: readonly Failure[] = [...LOOKING, ...READING, 409, 429, 500, 501, 503, 504, "default"];

/** What {@linkcode operation} is told. */
export interface OperationOptions {
  readonly tag: string;
  readonly summary: string;
  /** The content of a success. */
  readonly answer: object;
  /** Its headers. */
  readonly answerHeaders?: object;
  /** The content of the request. */
  readonly body?: object;
  /** @default {true} */
  readonly needsBody?: boolean;
  /** Headers of the request. */
  readonly headers?: Readonly<Record<string, object>>;
  /** @default none */
  readonly failures?: readonly Failure[];
  /** The schema of their bodies. @default {@linkcode ERROR} */
  readonly error?: object;
  /** Statuses that mean something else here. */
  readonly also?: Readonly<Record<string, object>>;
}

/** `{"error": MESSAGE}`, which failures are where a route does not say otherwise. */
export const ERROR = ref("Error");

const FOREIGN = { 403: { description: "The page that asks is of an origin that may not", ...json(ERROR) } };

/** An operation; its path's parameters are texts. */
export function operation(path: string, options: OperationOptions): object {
  const { tag, summary, answer, answerHeaders, body, needsBody = true, headers = {}, failures = [], also } = options;
  const parameters = [
    ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => parameter("path", name!, true, { ...TEXT, minLength: 1 })),
    ...Object.entries(headers).map(([name, schema]) => parameter("header", name, false, schema)),
  ];
  const error = json(options.error ?? ERROR);
  return {
    tags: [tag],
    summary,
    ...parameters.length > 0 && { parameters },
    ...body && { requestBody: { required: needsBody, ...body } },
    responses: {
      200: { description: "OK", ...answerHeaders && { headers: answerHeaders }, ...answer },
      ...FOREIGN,
      ...Object.fromEntries(failures.map((status) => [status, { ...FAILURES[status], ...error }])),
      ...also,
    },
  };
}

const parameter = (where: "path" | "header", name: string, required: boolean, schema: object) => ({
  name,
  in: where,
  required,
  schema,
});

/** Joins what protocols say. Throws a `TypeError` where two say the same path and method, schema or tag. */
export function joinOpenApi(parts: readonly (readonly [protocol: string, part: OpenApiPart])[]): OpenApiPart {
  const owners = new Map<string, string>();
  const claim = (what: string, protocol: string) => {
    const other = owners.get(what);
    if (other !== undefined) {
      throw new TypeError(`Cannot join the OpenAPI parts of protocols "${other}" and "${protocol}": both have ${what}`);
    }
    owners.set(what, protocol);
  };
  const paths: Record<string, Record<string, object>> = {};
  for (const [protocol, part] of parts) {
    for (const name of Object.keys(part.schemas ?? {})) claim(`schema "${name}"`, protocol);
    for (const { name } of part.tags ?? []) claim(`tag "${name}"`, protocol);
    for (const [path, operations] of Object.entries(part.paths)) {
      for (const method of Object.keys(operations)) claim(`${method.toUpperCase()} ${path}`, protocol);
      paths[path] = { ...paths[path], ...operations };
    }
  }
  return {
    paths,
    schemas: Object.assign({}, ...parts.map(([, { schemas }]) => schemas)),
    tags: parts.flatMap(([, { tags = [] }]) => tags),
  };
}
