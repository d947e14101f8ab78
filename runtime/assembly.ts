// The server without its sockets: functions, interceptors, sessions, health and protocols put together. What serves
// it (host/serve.ts) and what tests it (testing.ts) start here.
import type { Call, Interceptor, Invoke } from "./core/call.ts";
import type { Logger } from "./core/log.ts";
import type { ProcessMetrics } from "./core/metrics.ts";
import type { Observer } from "./core/observer.ts";
import type { Registry } from "./core/registry.ts";
import { shuttingDown } from "./core/signal.ts";
import { Activity } from "./middleware/activity.ts";
import { chain } from "./middleware/chain.ts";
import { deadline } from "./middleware/deadline.ts";
import { DEFAULT_REPLAY_LIMITS, type OtherReplays, type ReplayLimits, Replays } from "./middleware/replay.ts";
import { Metrics, type OtherMetrics } from "./middleware/metrics.ts";
import type { InstanceMetrics } from "./middleware/metrics_instances.ts";
import type { CallCounts } from "./middleware/metrics_requests.ts";
import { Sessions } from "./middleware/session.ts";
import { logRefused } from "./middleware/request_log.ts";
import { reportOutages } from "./middleware/session_outage.ts";
import { MemorySessionStore, type SessionStore } from "./middleware/session_store.ts";
import type { Tracing } from "./middleware/tracing.ts";
import type {
  AdapterHost,
  FailureListener,
  HealthView,
  HttpRoute,
  OpenApiPart,
  ProcessPlace,
  ProtocolAdapter,
  RpcService,
  ServerAddresses,
  ServingStatus,
} from "./protocols/adapter.ts";
import { joinOpenApi } from "./protocols/openapi.ts";

/** Bounds of a server; every one is an option. */
export interface Limits extends ReplayLimits {
  /** The largest message either way, in bytes. @default {67_108_864} */
  readonly maxMessageBytes: number;
  /** Calls that run at once. @default {1024} */
  readonly maxInFlight: number;
  /** Calls that wait for one of them to end. @default {1024} */
  readonly maxQueue: number;
  /** Sessions that are kept. @default {10_000} */
  readonly maxSessions: number;
  /** Bound of a unary call without a deadline of its own, in milliseconds. @default {60_000} */
  readonly unaryTimeoutMs: number;
}

/** The default bounds. */
export const DEFAULT_LIMITS: Limits = {
  maxMessageBytes: 64 * 1024 * 1024,
  maxInFlight: 1024,
  maxQueue: 1024,
  maxSessions: 10_000,
  unaryTimeoutMs: 60_000,
  ...DEFAULT_REPLAY_LIMITS,
};

/** Milliseconds that calls in progress get to finish at a shutdown. */
export const DEFAULT_GRACE_MS = 10_000;

/** The options of {@linkcode assemble}. */
export interface AssemblyOptions extends Limits {
  readonly registry: Registry;
  readonly adapters: readonly ProtocolAdapter[];
  readonly interceptors: readonly Interceptor[];
  readonly sessionStore?: SessionStore;
  /** Asked for streams that are kept elsewhere. */
  readonly otherReplays?: OtherReplays | undefined;
  /** @default the only one */
  readonly process?: ProcessPlace | undefined;
  /** Told of batches; the pools of the registry have their own. */
  readonly observer?: Observer | undefined;
  /** Logs a line for each request at `info`. @default {false} */
  readonly accessLog?: boolean | undefined;
  /** What makes spans. @default none are made */
  readonly tracing?: Tracing | undefined;
  /** What observes the pools of the registry, for metrics. */
  readonly instanceMetrics?: InstanceMetrics | undefined;
  /** Asked for the metrics of the server's other processes. */
  readonly otherMetrics?: (() => Promise<OtherMetrics>) | undefined;
  /** Processes that died in this one's place before it. @default {0} */
  readonly restarts?: number | undefined;
  readonly log: Logger;
}

/** A server without its sockets. */
export interface Assembly {
  readonly invoke: Invoke;
  /** How many calls there have been. */
  counts(): CallCounts;
  /** The metrics of this process. */
  metrics(): ProcessMetrics;
  readonly sessions: Sessions;
  readonly replays: Replays;
  readonly services: readonly RpcService[];
  readonly routes: readonly HttpRoute[];
  readonly health: HealthView;
  /** What listens says where, once it does. */
  readonly addresses: ServerAddresses;
  /** Aborts when the shutdown begins. */
  readonly draining: AbortSignal;
  /** Begins the shutdown: health turns, calls that would go on for ever end. */
  drain(): void;
  /** Ends the sessions and unloads the functions, once no call is in progress. */
  close(): Promise<void>;
}

/** Puts a server together. Throws a `TypeError` where two adapters describe the same path, schema or tag. */
export function assemble(options: AssemblyOptions): Assembly {
  const { registry, accessLog = false, log, process = { place: 1, count: 1 } } = options;
  const draining = new AbortController();
  const sessions = new Sessions({
    store: options.sessionStore ? reportOutages(options.sessionStore, log) : new MemorySessionStore(),
    maxSessions: options.maxSessions,
    pin: (call) => registry.pin(call),
    boundsOf: (call) => registry.sessionBoundsOf(call),
    onEnd: ({ revision, snapshot, reason }) => registry.endSession(revision, snapshot, reason),
    log,
  });
  const replays = new Replays({ ...options, deadline: deadline(options), others: options.otherReplays });
  registry.onCrowded = (revision) => sessions.endIdle(revision, "replaced");
  const activity = new Activity();
  const find = (call: Call) => registry.entryOf(call);
  const metrics = new Metrics({
    find,
    instances: options.instanceMetrics,
    others: options.otherMetrics,
    place: process.count > 1 ? process.place : undefined,
    loads: () => registry.loads(),
    list: () => registry.list(),
    sessions: () => sessions.size,
    restarts: options.restarts ?? 0,
  });
  const invokeFor = chain(registry.invoke, {
    ...options,
    find,
    roomOf: (call) => registry.roomOf(call),
    sessions,
    replays,
  });
  const services: RpcService[] = [];
  let openApi: OpenApiPart = { paths: {} };
  const health = createHealth(registry, draining.signal, () => services);
  const addresses: ServerAddresses = {};
  const meterOf = (protocol: string) => activity.metered(metrics.requests.meterOf(protocol));
  const invoke = invokeFor({ protocol: "", meterOf: meterOf("") });
  const host: AdapterHost = {
    invoke,
    catalog: registry,
    health,
    sessions,
    repository: registry,
    statistics: (name, version) => metrics.statistics(name, version),
    services: () => services,
    openApi: () => openApi,
    activity: () => activity.view(),
    process,
    addresses: () => addresses,
    metrics: () => metrics.collectAll(),
    log,
  };
  const routes: HttpRoute[] = [];
  const openApiParts: (readonly [protocol: string, part: OpenApiPart])[] = [];
  for (const adapter of options.adapters) {
    const protocol = protocolName(adapter);
    const endpoints = adapter({ ...host, invoke: invokeFor({ protocol, meterOf: meterOf(protocol) }) });
    const { rpc = [], http = [] } = endpoints;
    const onFailure: FailureListener = (error, request) => {
      if (metrics.requests.failed(protocol, error) && accessLog) logRefused(log, protocol, error, request);
    };
    services.push(...rpc.map((service) => ({
      ...service,
      methods: service.methods.map((method) => ({ ...method, onFailure })),
    })));
    routes.push(...http.map((route) => ({ ...route, onFailure })));
    if (endpoints.openApi) openApiParts.push([protocol, endpoints.openApi]);
  }
  openApi = joinOpenApi(openApiParts);
  return {
    invoke,
    counts: () => metrics.requests.counts,
    metrics: () => metrics.collect(),
    sessions,
    replays,
    services,
    routes,
    health,
    addresses,
    draining: draining.signal,
    drain: () => draining.abort(shuttingDown()),
    async close() {
      replays.close();
      await sessions.endAll("shutdown");
      await registry.closeAll();
    },
  };
}

// The protocol's folder: `inferenceV1` is of inference_v1.
function protocolName({ name }: ProtocolAdapter): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`) || "other";
}

// A function that is not warm can be called before it is loaded, so it counts as serving. So does one that was loaded
// once and is being replaced, after a crash say: its calls wait a moment. And one function that fails later does not
// take the server out of service.
function createHealth(registry: Registry, draining: AbortSignal, services: () => readonly RpcService[]): HealthView {
  const loaded = new Set<string>();
  let hasServed = false;
  const remember = () => {
    const entries = [...registry.list()];
    for (const { name, state } of entries) if (state === "ready") loaded.add(name);
    hasServed ||= entries.every((entry) => entry.state === "ready" || !registry.isWarm(entry));
  };
  registry.onChange(remember);
  const functionStatus = (name: string): ServingStatus => {
    const entry = registry.get(name);
    if (!entry) return "unknown";
    if (draining.aborted || entry.state === "failed" || entry.state === "unloaded") return "not_serving";
    return loaded.has(name) || !registry.isWarm(entry) ? "serving" : "not_serving";
  };
  const serverStatus = (): ServingStatus => {
    if (draining.aborted) return "not_serving";
    remember();
    return hasServed ? "serving" : "not_serving";
  };
  const status = (service: string): ServingStatus =>
    service === "" || services().some(({ name }) => name === service) ? serverStatus() : functionStatus(service);
  return {
    status,
    *list() {
      yield ["", serverStatus()];
      for (const { name } of services()) yield [name, serverStatus()];
      for (const { name } of registry.list()) yield [name, functionStatus(name)];
    },
    async *watch(service, signal) {
      let wake = Promise.withResolvers<void>();
      const onChange = () => wake.resolve();
      const unwatch = registry.onChange(onChange);
      signal.addEventListener("abort", onChange, { once: true });
      try {
        let last: ServingStatus | undefined;
        for (;;) {
          const now = status(service);
          if (now !== last) yield last = now;
          if (signal.aborted) return;
          await wake.promise;
          wake = Promise.withResolvers<void>();
        }
      } finally {
        unwatch();
        signal.removeEventListener("abort", onChange);
      }
    },
  };
}
