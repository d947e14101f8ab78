// A server on a free port and a grpc-js client of both services.
import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { serve, type ServeOptions, type Server } from "tensorlet";
import type { AnyModel } from "tensorlet";
import { patchHttp2Close } from "../../runtime/transports/grpc/http2_patch.ts";

// deno-lint-ignore no-explicit-any
type AnyClient = any;

/** A server, and clients of it. Disposing it closes both. */
export interface Served extends AsyncDisposable {
  readonly server: Server;
  readonly address: string;
  /** `inference.v1.ModelInference` */
  readonly v1: AnyClient;
  /** `inference.InferenceService` */
  readonly inference: AnyClient;
  readonly health: AnyClient;
}

const PROTOS = new URL("../../protos/", import.meta.url).pathname;

function serviceClass(file: string, name: string): grpc.ServiceClientConstructor {
  const definition = loadSync(`${PROTOS}${file}`, { keepCase: true, defaults: true, longs: Number });
  let scope: unknown = grpc.loadPackageDefinition(definition);
  for (const part of name.split(".")) scope = (scope as Record<string, unknown>)[part];
  return scope as grpc.ServiceClientConstructor;
}

/** Serves definitions on a free port. */
export async function serveModels(
  models: Readonly<Record<string, AnyModel>> | URL,
  options: ServeOptions = {},
): Promise<Served> {
  patchHttp2Close();
  const silent = { debug() {}, info() {}, warn() {}, error() {} };
  const server = await serve(models, { log: silent, ...options, grpc: { port: 0, ...options.grpc } });
  const address = `127.0.0.1:${server.addresses.grpc.port}`;
  const clients: grpc.Client[] = [];
  const connect = (file: string, name: string) => {
    const options = { "grpc.max_receive_message_length": -1, "grpc.use_local_subchannel_pool": 1 };
    const client = new (serviceClass(file, name))(address, grpc.credentials.createInsecure(), options);
    clients.push(client);
    return client;
  };
  return {
    server,
    address,
    v1: connect("inference/v1/model_inference.proto", "inference.v1.ModelInference"),
    inference: connect("inference.proto", "inference.InferenceService"),
    health: connect("grpc/health/v1/health.proto", "grpc.health.v1.Health"),
    async [Symbol.asyncDispose]() {
      clients.forEach((client) => client.close());
      await server.shutdown({ graceMs: 0 });
    },
  };
}

/** The answer to a unary or client-streaming call; rejects with grpc-js's ServiceError. */
export function answer<T>(
  start: (callback: (error: grpc.ServiceError | null, value: T) => void) => unknown,
): Promise<T> {
  return new Promise((resolve, reject) => start((error, value) => error ? reject(error) : resolve(value)));
}

/** Metadata of a call. */
export function metadata(entries: Readonly<Record<string, string>>): grpc.Metadata {
  const result = new grpc.Metadata();
  for (const [key, value] of Object.entries(entries)) result.set(key, value);
  return result;
}

/** Every message of a server stream. */
export async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const messages: T[] = [];
  for await (const message of stream) messages.push(message);
  return messages;
}
