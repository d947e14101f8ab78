// Calls a TestServer with messages rather than bytes. The bytes are proto-loader's, made from `protos/`.
import { loadSync, type MessageTypeDefinition, type PackageDefinition } from "@grpc/proto-loader";
import type { TestRpcResult, TestServer } from "tensorlet/testing";

const PROTOS = decodeURIComponent(new URL("../../protos/", import.meta.url).pathname);

// deno-lint-ignore no-explicit-any
type Message = any;

const OIP = "inference.GRPCInferenceService";

const METHODS = {
  tensors: ["inference.proto", "inference.InferenceService", "Predict", "InferenceRequest", "InferenceResponse"],
  predict: v1("Predict", "PredictRequest", "PredictResponse"),
  stream: v1("StreamPredict", "PredictRequest", "TokenChunk"),
  batch: v1("BatchPredict", "FeatureVector", "BatchResult"),
  chat: v1("ChatStream", "UserMessage", "AssistantMessage"),
  check: health("Check", "HealthCheckRequest", "HealthCheckResponse"),
  watch: health("Watch", "HealthCheckRequest", "HealthCheckResponse"),
  list: health("List", "HealthListRequest", "HealthListResponse"),
  infer: oip("ModelInfer"),
  streamInfer: [
    "inference/grpc_predict_v2.proto",
    OIP,
    "ModelStreamInfer",
    "ModelInferRequest",
    "ModelStreamInferResponse",
  ],
  serverLive: oip("ServerLive"),
  serverReady: oip("ServerReady"),
  modelReady: oip("ModelReady"),
  serverMetadata: oip("ServerMetadata"),
  modelMetadata: oip("ModelMetadata"),
  modelConfig: oip("ModelConfig"),
  modelStatistics: oip("ModelStatistics"),
  repositoryIndex: oip("RepositoryIndex"),
  repositoryLoad: oip("RepositoryModelLoad"),
  repositoryUnload: oip("RepositoryModelUnload"),
  reflect: [
    "grpc/reflection/v1/reflection.proto",
    "grpc.reflection.v1.ServerReflection",
    "ServerReflectionInfo",
    "ServerReflectionRequest",
    "ServerReflectionResponse",
  ],
} as const;

type MethodParts = readonly [file: string, service: string, method: string, request: string, response: string];

function v1(method: string, request: string, response: string): MethodParts {
  return ["inference/v1/model_inference.proto", "inference.v1.ModelInference", method, request, response];
}

function health(method: string, request: string, response: string): MethodParts {
  return ["grpc/health/v1/health.proto", "grpc.health.v1.Health", method, request, response];
}

function oip(method: string): MethodParts {
  return ["inference/grpc_predict_v2.proto", OIP, method, `${method}Request`, `${method}Response`];
}

const loaded = new Map<string, PackageDefinition>();

function messageType(file: string, service: string, name: string): MessageTypeDefinition<Message, Message> {
  const options = { keepCase: true, longs: Number, defaults: true };
  const definitions = loaded.get(file) ?? loadSync(`${PROTOS}${file}`, options);
  loaded.set(file, definitions);
  const packageName = service.slice(0, service.lastIndexOf("."));
  return definitions[`${packageName}.${name}`] as MessageTypeDefinition<Message, Message>;
}

/** How a call ended, with its answers decoded. */
export type MessageResult = Omit<TestRpcResult, "messages"> & { readonly replies: readonly Message[] };

export type Method = keyof typeof METHODS;
export type Requests = Iterable<object> | AsyncIterable<object>;

/** A method's path and the bytes of one of its requests. */
export function encode(method: Method, request: object): { readonly path: string; readonly bytes: Uint8Array } {
  const [file, service, name, requestType] = METHODS[method];
  return { path: `/${service}/${name}`, bytes: messageType(file, service, requestType).serialize(request) };
}

/** Calls a method with its request messages. */
export async function call(
  server: TestServer,
  method: Method,
  requests: Requests,
  options?: Parameters<TestServer["rpc"]>[2],
): Promise<MessageResult> {
  const [file, service, name, requestType, responseType] = METHODS[method];
  const request = messageType(file, service, requestType);
  async function* serialized() {
    for await (const message of requests) yield request.serialize(message);
  }
  const { messages, ...result } = await server.rpc(`/${service}/${name}`, serialized(), options);
  const response = messageType(file, service, responseType);
  return { ...result, replies: messages.map((bytes) => response.deserialize(bytes as Message)) };
}
