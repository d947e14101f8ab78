// The plug between wire protocols and the rest: what a protocol gets (AdapterHost) and what it gives (endpoints).
import type { ActivityView } from "../core/activity.ts";
import type { CallOrigin, CallParams, Invoke, PredictCall, Reply } from "../core/call.ts";
import type { Catalog, CatalogEntry } from "../core/catalog.ts";
import { ModelError } from "../core/error.ts";
import type { Logger } from "../core/log.ts";
import { mapValues } from "../core/map_values.ts";
import type { ProcessMetrics } from "../core/metrics.ts";
import { abortable, linkSignals } from "../core/signal.ts";
import type { FunctionStatistics } from "../core/statistics.ts";
import type { NamedTensors } from "../core/tensor.ts";
import { NO_VALUES } from "../core/values.ts";

/** Whether something can be called; `unknown`: there is no such thing. */
export type ServingStatus = "unknown" | "serving" | "not_serving";

/** Whether the server, its services and its functions can be called. */
export interface HealthView {
  /** "" = the server; else a service's full name or a function's. */
  status(service: string): ServingStatus;
  /** The current status at once, then every change, until the signal aborts. */
  watch(service: string, signal: AbortSignal): AsyncIterable<ServingStatus, void, undefined>;
  /** Every service and function with its status. */
  list(): Iterable<readonly [service: string, status: ServingStatus]>;
}

/** What keeps sessions alive between turns; `version` is the one that the client named. */
export interface SessionHolds {
  /** Keeps the session alive while a stream that serves it is open; returns what lets it go. */
  hold(model: string, version: string | undefined, id: string): () => void;
  /** Does so if the session exists, here or in a store that servers share; rejects where that cannot be reached. */
  holdExisting(model: string, version: string | undefined, id: string): Promise<(() => void) | undefined>;
  /** Ends the session if it exists: its client is done with it. A turn in progress finishes, the next begins anew. */
  end(model: string, version: string | undefined, id: string): Promise<void>;
}

/** Which functions are in service. */
export interface Repository {
  /** Puts every version of a function into service and loads it. Rejects where that fails. */
  load(name: string): Promise<void>;
  /** Takes every version of a function out of service until it is loaded again: calls in progress finish. */
  unload(name: string): void;
}

/** Where the server listens; what does not listen (yet) is missing. */
export interface ServerAddresses {
  /** The gRPC listener. */
  grpc?: { readonly hostname: string; readonly port: number };
}

/** Which of a server's processes this is. */
export interface ProcessPlace {
  /** From 1. */
  readonly place: number;
  /** How many there are. */
  readonly count: number;
}

/** What a protocol may use of the server. */
export interface AdapterHost {
  /** Runs a call; already wrapped in the interceptor chain. */
  readonly invoke: Invoke;
  /** Names, versions, specs and states. */
  readonly catalog: Catalog;
  /** What can be called. */
  readonly health: HealthView;
  /** What keeps sessions alive. */
  readonly sessions: SessionHolds;
  /** Which functions are in service. */
  readonly repository: Repository;
  /** What a version of a function has answered. */
  readonly statistics: (name: string, version: string) => FunctionStatistics;
  /** Every service that is served, for reflection. */
  readonly services: () => Iterable<RpcService>;
  /** What every protocol has told of its routes, as one. */
  readonly openApi: () => OpenApiPart;
  /** What it has been doing, for somebody who looks at it. */
  readonly activity: () => ActivityView;
  /** Which of its processes this is: what it has been doing is this one's part. */
  readonly process: ProcessPlace;
  /** Where it can be reached. */
  readonly addresses: () => ServerAddresses;
  /** The metrics of each of the server's processes, this one first; of those that answer. */
  readonly metrics: () => Promise<readonly ProcessMetrics[]>;
  /** The server's log. */
  readonly log: Logger;
}

/** Told of what a request failed with. */
export type FailureListener = (error: ModelError, request: Pick<RequestContext, "id" | "origin">) => void;

/** One RPC method: bytes in and out at the transport's side, messages at the adapter's. */
export interface RpcMethod {
  /** Its name. */
  readonly name: string;
  /** Whether the client sends many messages. */
  readonly clientStreaming: boolean;
  /** Whether the server sends many messages. */
  readonly serverStreaming: boolean;
  /** Throws a `ModelError` for bytes that are no such message. They are the method's from then on. */
  readonly decode: (bytes: Uint8Array) => unknown;
  /** Makes the bytes of an answer, which are the transport's from then on. */
  readonly encode: (message: unknown) => Uint8Array;
  /** Told of what a request failed with; the server sets it. */
  readonly onFailure?: FailureListener;
  /** Answers the requests of one RPC. */
  handle(requests: AsyncIterable<unknown, void, undefined>, rpc: RpcContext): AsyncIterable<unknown, void, undefined>;
}

/** A .proto file as reflection gives it out. */
export interface ProtoFile {
  /** Its path below `protos/`. */
  readonly name: string;
  /** The serialised FileDescriptorProto. */
  readonly bytes: Uint8Array;
  /** The full names that it defines: services, methods, messages, fields, enums. */
  readonly symbols: readonly string[];
}

/** One RPC service. */
export interface RpcService {
  /** `inference.v1.ModelInference` */
  readonly name: string;
  /** What it offers. */
  readonly methods: readonly RpcMethod[];
  /** The file that defines it, for reflection. */
  readonly file: ProtoFile;
}

/** A request in progress, whatever carries it. */
export interface RequestContext {
  /** The caller's `request-id`, or one that the transport made. */
  readonly id: string;
  /** Aborts when the client cancels or leaves, at its deadline, and at a shutdown. */
  readonly signal: AbortSignal;
  /** Aborts when the server begins to shut down: a call that would go on for ever ends itself. */
  readonly draining: AbortSignal;
  /** Epoch milliseconds. */
  readonly deadline: number | undefined;
  /** Lower-cased request metadata. */
  readonly metadata: Headers;
  /** The largest message either way, in bytes. */
  readonly maxMessageBytes: number;
  /** How it came. */
  readonly origin?: CallOrigin | undefined;
}

/** One RPC in progress. */
export interface RpcContext extends RequestContext {
  /** Sent with the first message. */
  readonly responseMetadata: Headers;
  /** Sent with the status. */
  readonly trailers: Headers;
  /** When the last request message began to be decoded, by `performance.now()`. */
  decodedAt(): number;
}

/** One HTTP request in progress. */
export interface HttpContext extends RequestContext {
  /** What the `:name` parts of the route's path stand for, decoded. */
  readonly params: Readonly<Record<string, string>>;
  /** The whole body, decompressed. Rejects with a `ModelError` where it is too large, broken or does not come. */
  readBody(): Promise<Uint8Array>;
}

/** What answers one method of one path. */
export interface HttpRoute {
  /** Which requests it is for. */
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Path segments, `:name` for one that stands for itself: `/v2/models/:model/infer`. */
  readonly path: string;
  /** Told of what a request failed with; the server sets it. */
  readonly onFailure?: FailureListener;
  /** Answers a request, or throws a `ModelError`. */
  handle(request: Request, http: HttpContext): Response | Promise<Response>;
  /** The JSON body of a failure. @default `{"error": MESSAGE}` */
  errorBody?(error: ModelError, status: number): unknown;
}

/** What of an OpenAPI 3.1 document is a protocol's; `GET /openapi.json` has all of them. */
export interface OpenApiPart {
  /** Operations by path, as OpenAPI writes it (`/v2/models/{model}`), and by method in lower case. */
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>;
  /** What they refer to as `#/components/schemas/NAME`. A name is one protocol's: two that have it are an error. */
  readonly schemas?: Readonly<Record<string, object>>;
  /** The groups of its operations. */
  readonly tags?: readonly { readonly name: string; readonly description: string }[];
}

/** What a protocol serves. */
export interface ProtocolEndpoints {
  /** RPC services. */
  readonly rpc?: readonly RpcService[];
  /** HTTP routes. */
  readonly http?: readonly HttpRoute[];
  /** The routes that are meant for others, described. */
  readonly openApi?: OpenApiPart;
}

/**
 * One wire protocol. Pure: wire messages to calls and back. Opens nothing, keeps no global state. The function's name is the
 * protocol's in metrics.
 */
export type ProtocolAdapter = (host: AdapterHost) => ProtocolEndpoints;

const PARAM_PREFIX = "param-";

/**
 * The parameters that metadata keys `param-NAME` carry, for messages that have no field for them. HTTP/2 has only
 * lower-case keys: a declared name in other letters is found all the same.
 */
export function metadataParams(metadata: Headers, entry: CatalogEntry): CallParams {
  const declared = Object.keys(entry.params ?? {});
  const params: Record<string, string> = Object.create(null);
  metadata.forEach((value, key) => { // a quarter of an iterator's time
    if (!key.startsWith(PARAM_PREFIX)) return;
    const name = key.slice(PARAM_PREFIX.length);
    params[declared.find((candidate) => candidate.toLowerCase() === name) ?? name] = value;
  });
  return params;
}

/** What the calls of one request share. */
export function callBase(
  request: RequestContext,
  entry: CatalogEntry,
  params: CallParams,
  maxTokens = 0,
): Omit<PredictCall, "kind" | "input"> {
  return {
    id: request.id,
    model: entry.name,
    version: entry.version,
    revision: entry.revision,
    params,
    maxTokens: maxTokens === 0 ? undefined : maxTokens,
    signal: request.signal,
    deadline: request.deadline,
    metadata: request.metadata,
    values: NO_VALUES,
    receivedAt: performance.now(),
    trail: { origin: request.origin },
  };
}

/** The one request of an RPC whose client does not stream. */
export async function onlyRequest<T>(requests: AsyncIterable<unknown, void, undefined>): Promise<T> {
  for await (const request of requests) return request as T;
  throw new ModelError("invalid_argument", "Cannot read the request: the client sent none");
}

/**
 * The one answer of a predict call. The call ends when the reader asks for more, that is when the transport has
 * delivered the answer: until then it counts among the calls in flight, which bounds what waits in memory.
 */
export function invokePredict(invoke: Invoke, call: PredictCall): AsyncIterable<NamedTensors, void, undefined> {
  return mapValues(invoke(call), outputOf);
}

function outputOf(reply: Reply): NamedTensors {
  if (reply.type === "tensors") return reply.output;
  throw new TypeError(`A predict call was answered by a reply of type "${reply.type}"`);
}

/** A client's requests, until the server is to shut down: then it throws `rpc.draining`'s reason between two. */
export async function* untilDraining<T>(
  requests: AsyncIterable<unknown, void, undefined>,
  rpc: RpcContext,
): AsyncGenerator<T, void, undefined> {
  using stop = linkSignals(rpc.signal, rpc.draining);
  const reader = requests[Symbol.asyncIterator]();
  for (;;) {
    const next = await abortable(reader.next(), stop.signal);
    if (next.done) return;
    yield next.value as T;
  }
}
