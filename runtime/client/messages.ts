// The messages and methods of both services, from descriptors that are part of the code: no file is read.
import { fromJSON, type MessageTypeDefinition, type ServiceDefinition } from "@grpc/proto-loader";
import type { TensorData } from "../protocols/inference/tensor.ts";
import protos from "./protos.json" with { type: "json" };

/** One RPC: its path, and its messages to bytes and back. */
export interface Method<Request, Response> {
  readonly path: string;
  readonly serialize: (request: Request) => Uint8Array;
  readonly deserialize: (bytes: Uint8Array) => Response;
}

export interface InferenceRequest {
  readonly model_name: string;
  readonly inputs: readonly TensorData[];
}

export interface InferenceResponse {
  readonly outputs: readonly TensorData[];
  readonly latency_ms: number;
}

export interface PredictRequest {
  readonly model_id: string;
  readonly input_tensor: readonly number[];
  readonly params: Readonly<Record<string, string>>;
  readonly max_tokens: number;
}

export interface TokenChunk {
  readonly index: number;
  readonly token: string;
  readonly is_final: boolean;
}

export interface FeatureVector {
  readonly id: string;
  readonly features: readonly number[];
}

export interface BatchResult {
  readonly results: readonly {
    readonly output_tensor: readonly number[];
    readonly latency_ms: number;
    readonly model_version: string;
  }[];
  readonly total_processed: number;
}

export interface UserMessage {
  readonly session_id: string;
  readonly content: string;
}

export interface AssistantMessage {
  readonly session_id: string;
  readonly content: string;
  readonly finish_reason: boolean;
}

// The types of protobufjs say that everything in a package is a service.
const DEFINITIONS = fromJSON(protos as unknown as Parameters<typeof fromJSON>[0], {
  keepCase: true,
  longs: Number,
  defaults: true,
});

function method<Request, Response>(service: string, name: string): Method<Request, Response> {
  const { path, requestSerialize, responseDeserialize } = (DEFINITIONS[service] as ServiceDefinition)[name]!;
  return { path, serialize: requestSerialize, deserialize: responseDeserialize } as unknown as Method<
    Request,
    Response
  >;
}

export const PREDICT = method<InferenceRequest, InferenceResponse>("inference.InferenceService", "Predict");
export const STREAM_PREDICT = method<PredictRequest, TokenChunk>("inference.v1.ModelInference", "StreamPredict");
export const BATCH_PREDICT = method<FeatureVector, BatchResult>("inference.v1.ModelInference", "BatchPredict");
export const CHAT_STREAM = method<UserMessage, AssistantMessage>("inference.v1.ModelInference", "ChatStream");

interface Status {
  readonly details: readonly { readonly type_url: string; readonly value: Uint8Array }[];
}
interface ErrorInfo {
  readonly metadata: Readonly<Record<string, string>>;
}
interface RetryInfo {
  readonly retry_delay: { readonly seconds: number; readonly nanos: number } | null;
}

function decode<Message>(name: string, bytes: Uint8Array): Message {
  const type = DEFINITIONS[`google.rpc.${name}`] as MessageTypeDefinition<object, object>;
  return type.deserialize(bytes as Parameters<typeof type.deserialize>[0]) as Message;
}

/** What `grpc-status-details-bin` says. */
export function decodeStatusDetails(bytes: Uint8Array): {
  readonly details?: Readonly<Record<string, string>>;
  readonly retryAfterMs?: number;
} {
  let details: Readonly<Record<string, string>> | undefined;
  let retryAfterMs: number | undefined;
  for (const { type_url, value } of decode<Status>("Status", bytes).details) {
    if (type_url.endsWith("/google.rpc.ErrorInfo")) details = decode<ErrorInfo>("ErrorInfo", value).metadata;
    if (type_url.endsWith("/google.rpc.RetryInfo")) {
      const { seconds, nanos } = decode<RetryInfo>("RetryInfo", value).retry_delay ?? { seconds: 0, nanos: 0 };
      retryAfterMs = seconds * 1000 + nanos / 1e6;
    }
  }
  return { ...details && { details }, ...retryAfterMs !== undefined && { retryAfterMs } };
}
