// The HTTP surface as a part of the OpenAPI document.
import type { OpenApiPart } from "../adapter.ts";
import {
  CALLING,
  COUNT,
  type Failure,
  FLAG,
  json,
  list,
  LOOKING,
  nullable,
  object,
  operation,
  type OperationOptions,
  READING,
  ref,
  TEXT,
} from "../openapi.ts";

const PARAMETERS = {
  type: "object",
  additionalProperties: { type: ["string", "number", "boolean"] },
};
const DATATYPES = [
  ...["BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"],
  ...["FP16", "BF16", "FP32", "FP64", "BYTES"],
];
const FACTS = { name: TEXT, datatype: { type: "string", enum: DATATYPES }, shape: list(COUNT) };
const DATA = {
  type: "array",
  description: 'Row-major, flat or nested. 64-bit integers are exact; "NaN", "Infinity" and "-Infinity" are texts.',
  items: {},
};
const TENSOR = object(FACTS, { parameters: PARAMETERS, data: DATA });
const DESCRIBED = list(object({ name: TEXT, datatype: TEXT, shape: list({ type: "integer", minimum: -1 }) }));
const DURATION = object({ count: COUNT, ns: COUNT });

const SCHEMAS = {
  ServerMetadata: object({ name: TEXT, version: TEXT, extensions: list(TEXT) }),
  ModelMetadata: object({ name: TEXT, versions: list(TEXT), platform: TEXT, inputs: DESCRIBED, outputs: DESCRIBED }),
  ModelConfig: object({ name: TEXT, platform: TEXT, backend: TEXT, max_batch_size: COUNT }),
  ModelStatistics: object({
    model_stats: list(object({
      name: TEXT,
      version: TEXT,
      last_inference: COUNT,
      inference_count: COUNT,
      execution_count: COUNT,
      inference_stats: { type: "object", additionalProperties: DURATION },
    })),
  }),
  RepositoryIndex: list(object({ name: TEXT, version: TEXT, state: TEXT, reason: TEXT })),
  InferRequest: {
    ...object({}, {
      id: TEXT,
      parameters: PARAMETERS,
      inputs: nullable(list(TENSOR)),
      outputs: nullable(list(object({ name: TEXT }, { parameters: PARAMETERS }))),
    }),
    examples: [{ inputs: [{ name: "INPUT__0", datatype: "FP32", shape: [3], data: [1, 2, 3] }] }],
  },
  InferResponse: object({ model_name: TEXT, model_version: TEXT, outputs: list(TENSOR) }, { id: TEXT }),
  GenerateRequest: {
    ...object({}, { id: TEXT, text_input: TEXT, parameters: PARAMETERS }),
    description: "Other members are the function's inputs and params by their names.",
    additionalProperties: { type: ["string", "number", "boolean", "array"] },
    examples: [{ text_input: "It was", parameters: { max_tokens: 8 } }],
  },
  GenerateResponse: {
    ...object({ model_name: TEXT, model_version: TEXT }, { id: TEXT }),
    description: "Other members are the function's outputs by their names, `text_output` for a text.",
    additionalProperties: true,
  },
};

const TAG = "Open Inference Protocol v2";

type Told = Omit<OperationOptions, "tag">;
type Method = "get" | "post";

const one = (method: Method, path: string, told: Told) => ({
  [path]: { [method]: operation(path, { tag: TAG, ...told }) },
});
const ofModel = (method: Method, action: string, told: Told) => ({
  ...one(method, `/v2/models/{model}${action}`, told),
  ...one(method, `/v2/models/{model}/versions/{version}${action}`, told),
});

const HEADER_LENGTH = {
  ...COUNT,
  description: "How many bytes of the body are JSON; tensors follow as bytes. 0: the body is the one tensor.",
};
const tensors = (name: string) => ({
  content: {
    ...json(ref(name)).content,
    "application/octet-stream": { schema: { type: "string", format: "binary" } },
  },
});
const readiness = (name: string) => ({
  answer: json(object({ [name]: FLAG })),
  also: { 503: { description: "Not so", ...json(object({ [name]: FLAG })) } },
});
const LOADING: readonly Failure[] = [...LOOKING, ...READING, 500, 503];
// An event's data.
const EVENT = {
  ...TEXT,
  contentMediaType: "application/json",
  contentSchema: { anyOf: [ref("GenerateResponse"), ref("Error")] },
};

/** The routes, described. */
export const OPENAPI: OpenApiPart = {
  tags: [{ name: TAG, description: "What KServe, Triton and MLServer speak" }],
  paths: {
    ...one("get", "/v2", { summary: "What serves", answer: json(ref("ServerMetadata")) }),
    ...one("get", "/v2/health/live", { summary: "Whether the server lives", ...readiness("live") }),
    ...one("get", "/v2/health/ready", { summary: "Whether the server is ready", ...readiness("ready") }),
    ...one("get", "/v2/models/stats", {
      summary: "What every function has answered",
      answer: json(ref("ModelStatistics")),
    }),
    ...ofModel("get", "", {
      summary: "What a function takes and gives",
      answer: json(ref("ModelMetadata")),
      failures: LOOKING,
    }),
    ...ofModel("get", "/ready", { summary: "Whether a function is ready", ...readiness("ready"), failures: LOOKING }),
    ...ofModel("get", "/config", {
      summary: "A function as a Triton model",
      answer: json(ref("ModelConfig")),
      failures: LOOKING,
    }),
    ...ofModel("get", "/stats", {
      summary: "What a function has answered",
      answer: json(ref("ModelStatistics")),
      failures: LOOKING,
    }),
    ...ofModel("post", "/infer", {
      summary: "One inference",
      headers: { "Inference-Header-Content-Length": HEADER_LENGTH },
      body: tensors("InferRequest"),
      answer: tensors("InferResponse"),
      answerHeaders: { "Inference-Header-Content-Length": { schema: COUNT } },
      failures: CALLING,
    }),
    ...ofModel("post", "/generate", {
      summary: "One answer, the tokens of a stream joined",
      body: json(ref("GenerateRequest")),
      answer: json(ref("GenerateResponse")),
      failures: CALLING,
    }),
    ...ofModel("post", "/generate_stream", {
      summary: "An event for each answer; the last may be an error",
      body: json(ref("GenerateRequest")),
      answer: { content: { "text/event-stream": { schema: object({ data: EVENT }) } } },
      failures: CALLING,
    }),
    ...one("post", "/v2/repository/index", {
      summary: "Which functions there are",
      body: json(object({}, { ready: FLAG })),
      needsBody: false,
      answer: json(ref("RepositoryIndex")),
      failures: READING,
    }),
    ...one("post", "/v2/repository/models/{model}/load", {
      summary: "Takes a function into service",
      body: json(object({}, { parameters: { type: "object", maxProperties: 0 } })),
      needsBody: false,
      answer: json({ type: "object" }),
      failures: LOADING,
    }),
    ...one("post", "/v2/repository/models/{model}/unload", {
      summary: "Takes a function out of service",
      body: json({ type: "object" }),
      needsBody: false,
      answer: json({ type: "object" }),
      failures: [...LOOKING, ...READING],
    }),
  },
  schemas: SCHEMAS,
};
