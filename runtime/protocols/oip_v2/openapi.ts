// The HTTP surface as an OpenAPI document.
import { SERVER_METADATA } from "./describe.ts";

const json = (schema: object) => ({ content: { "application/json": { schema } } });
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const list = (items: object) => ({ type: "array", items });
const object = (properties: Readonly<Record<string, object>>, required: readonly string[] = []) => ({
  type: "object",
  properties,
  ...required.length > 0 && { required },
});

const TEXT = { type: "string" };
const FLAG = { type: "boolean" };
const COUNT = { type: "integer", minimum: 0 };
const PARAMETERS = {
  type: "object",
  additionalProperties: { type: ["string", "number", "boolean"] },
};
const EVENT = { type: "string", contentMediaType: "application/json", contentSchema: ref("GenerateResponse") };
const DATATYPES = [
  ...["BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"],
  ...["FP16", "BF16", "FP32", "FP64", "BYTES"],
];
const DATA = {
  type: "array",
  description: 'Row-major, flat or nested. 64-bit integers are exact; "NaN", "Infinity" and "-Infinity" are texts.',
  items: {},
};
const TENSOR = {
  name: TEXT,
  datatype: { type: "string", enum: DATATYPES },
  shape: list({ type: "integer", minimum: 0 }),
  parameters: PARAMETERS,
  data: DATA,
};
const DESCRIBED = list(object({ name: TEXT, datatype: TEXT, shape: list({ type: "integer", minimum: -1 }) }, [
  "name",
  "datatype",
  "shape",
]));
const DURATION = object({ count: COUNT, ns: COUNT }, ["count", "ns"]);

const SCHEMAS = {
  Error: object({ error: TEXT }, ["error"]),
  ServerMetadata: object({ name: TEXT, version: TEXT, extensions: list(TEXT) }, ["name", "version", "extensions"]),
  ModelMetadata: object({
    name: TEXT,
    versions: list(TEXT),
    platform: TEXT,
    inputs: DESCRIBED,
    outputs: DESCRIBED,
  }, ["name", "versions", "platform", "inputs", "outputs"]),
  ModelConfig: object({ name: TEXT, platform: TEXT, backend: TEXT, max_batch_size: COUNT }, ["name"]),
  ModelStatistics: object({
    model_stats: list(object({
      name: TEXT,
      version: TEXT,
      last_inference: COUNT,
      inference_count: COUNT,
      execution_count: COUNT,
      inference_stats: { type: "object", additionalProperties: DURATION },
    }, ["name", "version", "inference_stats"])),
  }, ["model_stats"]),
  RepositoryIndex: list(object({ name: TEXT, version: TEXT, state: TEXT, reason: TEXT }, ["name", "state"])),
  InferRequest: object({
    id: TEXT,
    parameters: PARAMETERS,
    inputs: list(object(TENSOR, ["name", "datatype", "shape"])),
    outputs: list(object({ name: TEXT, parameters: PARAMETERS }, ["name"])),
  }),
  InferResponse: object({
    id: TEXT,
    model_name: TEXT,
    model_version: TEXT,
    outputs: list(object(TENSOR, ["name", "datatype", "shape"])),
  }, ["model_name", "model_version", "outputs"]),
  GenerateRequest: {
    ...object({ id: TEXT, text_input: TEXT, parameters: PARAMETERS, stream: FLAG }),
    description: "Other members are the function's inputs and params by their names.",
    additionalProperties: true,
  },
  GenerateResponse: object({ id: TEXT, model_name: TEXT, model_version: TEXT, text_output: TEXT }, [
    "model_name",
    "model_version",
  ]),
};

const FAILURE = { description: "Why it failed", ...json(ref("Error")) };

interface Operation {
  readonly summary: string;
  /** Of a success. */
  readonly answer: object;
  readonly body?: object;
  /** @default {true} */
  readonly needsBody?: boolean;
  /** Statuses besides those of every path. */
  readonly also?: Readonly<Record<string, object>>;
}

function operation({ summary, answer, body, needsBody = true, also }: Operation, path: string): object {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
  return {
    summary,
    tags: ["Open Inference Protocol v2"],
    ...names.length > 0 && { parameters: names.map((name) => ({ name, in: "path", required: true, schema: TEXT })) },
    ...body && { requestBody: { required: needsBody, ...body } },
    responses: { 200: { description: "OK", ...answer }, ...also, default: FAILURE },
  };
}

const one = (method: "get" | "post", path: string, what: Operation) => ({
  [path]: { [method]: operation(what, path) },
});
const ofModel = (method: "get" | "post", action: string, what: Operation) => ({
  ...one(method, `/v2/models/{model}${action}`, what),
  ...one(method, `/v2/models/{model}/versions/{version}${action}`, what),
});

const BINARY = { schema: { type: "string", format: "binary" } };
const tensors = (name: string) => ({
  content: { ...json(ref(name)).content, "application/octet-stream": BINARY },
});
const readiness = (name: string) => ({
  answer: json(object({ [name]: FLAG }, [name])),
  also: { 503: { description: "Not ready", ...json(object({ [name]: FLAG, error: TEXT })) } },
});

/** The document; `paths` and `components.schemas` can be joined with those of other protocols. */
export const OPENAPI = {
  openapi: "3.1.0",
  info: { title: `${SERVER_METADATA.name}: Open Inference Protocol v2`, version: SERVER_METADATA.version },
  paths: {
    ...one("get", "/v2", { summary: "What serves", answer: json(ref("ServerMetadata")) }),
    ...one("get", "/v2/health/live", { summary: "Whether the server lives", ...readiness("live") }),
    ...one("get", "/v2/health/ready", { summary: "Whether the server is ready", ...readiness("ready") }),
    ...one("get", "/v2/models/stats", {
      summary: "What every function has answered",
      answer: json(ref("ModelStatistics")),
    }),
    ...ofModel("get", "", { summary: "What a function takes and gives", answer: json(ref("ModelMetadata")) }),
    ...ofModel("get", "/ready", { summary: "Whether a function is ready", ...readiness("ready") }),
    ...ofModel("get", "/config", { summary: "A function as a Triton model", answer: json(ref("ModelConfig")) }),
    ...ofModel("get", "/stats", { summary: "What a function has answered", answer: json(ref("ModelStatistics")) }),
    ...ofModel("post", "/infer", {
      summary: "One inference",
      body: tensors("InferRequest"),
      answer: tensors("InferResponse"),
    }),
    ...ofModel("post", "/generate", {
      summary: "One answer, the tokens of a stream joined",
      body: json(ref("GenerateRequest")),
      answer: json(ref("GenerateResponse")),
    }),
    ...ofModel("post", "/generate_stream", {
      summary: "An event for each answer",
      body: json(ref("GenerateRequest")),
      answer: { content: { "text/event-stream": { schema: object({ data: EVENT }, ["data"]) } } },
    }),
    ...one("post", "/v2/repository/index", {
      summary: "Which functions there are",
      body: json(object({ ready: FLAG })),
      needsBody: false,
      answer: json(ref("RepositoryIndex")),
    }),
    ...one("post", "/v2/repository/models/{model}/load", {
      summary: "Takes a function into service",
      body: json(object({ parameters: { type: "object" } })),
      needsBody: false,
      answer: json(object({})),
    }),
    ...one("post", "/v2/repository/models/{model}/unload", {
      summary: "Takes a function out of service",
      body: json(object({ parameters: { type: "object" } })),
      needsBody: false,
      answer: json(object({})),
    }),
  },
  components: { schemas: SCHEMAS },
};
