/**
 * Serve model functions over gRPC: a file in `functions/` calls `defineModel({...})`, and
 * `deno run -A mod.ts` serves it.
 *
 * Functions import this module inside workers without permissions: it reaches the host only by `import()`.
 *
 * @module
 */
export type {
  BatchCall,
  BatchCallItem,
  Call,
  CallBase,
  CallKind,
  CallOrigin,
  CallParams,
  CallTrail,
  ChatCall,
  ChatMessage,
  Interceptor,
  Invoke,
  PredictCall,
  Reply,
  SessionSnapshot,
  StreamCall,
} from "./runtime/core/call.ts";
export type { Catalog, CatalogEntry, ModelState } from "./runtime/core/catalog.ts";
export type {
  BatchContext,
  BatchItem,
  ChatContext,
  Context,
  LoadContext,
  Session,
  StreamContext,
} from "./runtime/core/context.ts";
export type { ContextKey, ContextValues } from "./runtime/core/values.ts";
export { createContextKey, withValue } from "./runtime/core/values.ts";
export type {
  AnyModel,
  Batching,
  BatchingOptions,
  Chunk,
  Emitted,
  InferInput,
  InferOutput,
  Inputs,
  MaybePromise,
  ModelDefinition,
  ModelOptions,
  Outputs,
  ParamsOf,
  SessionEnd,
  SessionOptions,
} from "./runtime/core/define.ts";
export { defineModel } from "./runtime/core/define.ts";
export type { DataTypeMap, DType, FixedDType } from "./runtime/core/dtype.ts";
export type { ErrorCode, ModelErrorOptions } from "./runtime/core/error.ts";
export { ModelError } from "./runtime/core/error.ts";
export type { LogFields, Logger, LogLevel, LogRecord } from "./runtime/core/log.ts";
export type { MetricFamily, MetricSample, ProcessMetrics } from "./runtime/core/metrics.ts";
export type {
  BooleanParam,
  Flatten,
  Init,
  Inits,
  IoSpec,
  NamedSpec,
  NumberParam,
  OptionalNames,
  Params,
  ParamSpec,
  ParamSpecs,
  ParamType,
  ParamValue,
  ShapeOf,
  StringParam,
  TensorSpec,
  TensorSpecs,
  Value,
  Values,
} from "./runtime/core/spec.ts";
export type { Durations, FunctionStatistics } from "./runtime/core/statistics.ts";
export type { AnyTensor, NamedTensors, Shape, Tensor } from "./runtime/core/tensor.ts";
export { mapNumeric, tensor, toFloat32 } from "./runtime/core/tensor.ts";
export type { Limits } from "./runtime/assembly.ts";
export type { ReplayLimits } from "./runtime/middleware/replay.ts";
export type { Lease, SessionRecord, SessionStore } from "./runtime/middleware/session_store.ts";
export type {
  AdapterHost,
  FailureListener,
  HealthView,
  HttpContext,
  HttpRoute,
  OpenApiPart,
  ProcessPlace,
  ProtocolAdapter,
  ProtocolEndpoints,
  ProtoFile,
  Repository,
  RequestContext,
  RpcContext,
  RpcMethod,
  RpcService,
  ServerAddresses,
  ServingStatus,
  SessionHolds,
} from "./runtime/protocols/adapter.ts";
export type { ActivityCounts, ActivityView, LatencyView } from "./runtime/core/activity.ts";
export type { FunctionStatus } from "./runtime/host/status.ts";
export type { Isolation } from "./runtime/host/manifest.ts";
export type {
  HttpListenOptions,
  ListenOptions,
  ServeOptions,
  Server,
  ServerState,
  UnfitServer,
} from "./runtime/host/serve.ts";
import type { AnyModel } from "./runtime/core/define.ts";
import type { SessionStore } from "./runtime/middleware/session_store.ts";
import type { ServeOptions, Server } from "./runtime/host/serve.ts";

/**
 * Serves a folder of functions, or definitions by name. Rejects where the address cannot be had.
 *
 * @example
 * ```ts
 * import { defineModel, mapNumeric, serve } from "tensorlet";
 *
 * const affine = defineModel({ predict: ([x]) => mapNumeric(x, (v) => v * 2 + 10, (v) => v * 2n + 10n) });
 * await using server = await serve({ affine }, { grpc: { port: 0 } });
 * console.assert(server.addresses.grpc.port > 0);
 * ```
 */
export async function serve(
  models: URL | string | Readonly<Record<string, AnyModel>>,
  options?: ServeOptions,
): Promise<Server> {
  const host = await import("./runtime/host/serve.ts");
  return await host.serve(models, options);
}

/**
 * Keeps sessions in a Deno KV file, for `serve({ sessions })`: they outlive the server, and several servers of one
 * machine may share them. The file is made at the first use; its folder has to exist. Needs Deno's `--unstable-kv`, or
 * `"unstable": ["kv"]`. A session of more than 720,000 bytes is refused with `resource_exhausted`.
 *
 * @example
 * ```ts
 * import { defineModel, openKvSessions, serve } from "tensorlet";
 *
 * const parrot = defineModel({ chat: async function* (message) { yield message.content; } });
 * const sessions = await openKvSessions(await Deno.makeTempFile());
 * {
 *   await using server = await serve({ parrot }, { grpc: { port: 0 }, sessions });
 *   console.assert(server.state !== "stopped");
 * }
 * await sessions.close();
 * ```
 */
export async function openKvSessions(path: string): Promise<SessionStore> {
  const { openStore } = await import("./runtime/stores/open.ts");
  return await openStore({ kind: "kv", path });
}

/**
 * Keeps sessions in Redis (6 or newer), for `serve({ sessions })`: they outlive the server, and servers that share the
 * Redis share them. `url` is `redis://[USER:PASSWORD@]HOST[:PORT][/DB]`, with `rediss://` for TLS. It connects at the
 * first use, and again when the connection was lost; meanwhile chats are refused as `unavailable`. Throws `RangeError`
 * for a text that is no such URL.
 *
 * @example
 * ```ts
 * import { openRedisSessions } from "tensorlet";
 *
 * const sessions = await openRedisSessions("redis://127.0.0.1:6379/1");
 * console.assert(sessions.durable);
 * await sessions.close();
 * ```
 */
export async function openRedisSessions(url: string): Promise<SessionStore> {
  const { openStore, parseStoreChoice } = await import("./runtime/stores/open.ts");
  const choice = parseStoreChoice(url);
  if (choice.kind !== "redis") throw new RangeError("Cannot open sessions: the URL does not begin with redis://");
  return await openStore(choice);
}

if (import.meta.main) {
  // Not awaited: functions import this module, and would wait for it for ever.
  import("./runtime/host/cli.ts").then(({ main }) => main(Deno.args)).then((code) => Deno.exit(code));
}
