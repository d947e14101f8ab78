// The composition root: functions, interceptors, protocols and transports become a server.
import { assemble, type Assembly, DEFAULT_GRACE_MS, DEFAULT_LIMITS, type Limits } from "../assembly.ts";
import type { Interceptor } from "../core/call.ts";
import type { Catalog, ModelState } from "../core/catalog.ts";
import { type AnyModel, resolveModel } from "../core/define.ts";
import { type Logger, quieter } from "../core/log.ts";
import { Registry } from "../core/registry.ts";
import { within } from "../core/signal.ts";
import { InstanceMetrics } from "../middleware/metrics_instances.ts";
import type { SessionStore } from "../middleware/session_store.ts";
import type { ProcessPlace, ProtocolAdapter } from "../protocols/adapter.ts";
import { PROTOCOLS } from "../protocols/mod.ts";
import { DEFAULT_KEEPALIVE } from "../transports/grpc/keepalive.ts";
import { type GrpcServer, serveGrpc } from "../transports/grpc/server.ts";
import { type HttpServer, serveHttp } from "../transports/http/server.ts";
import { inlinePool } from "../workers/inline.ts";
import type { Verdicts } from "./control.ts";
import { FunctionFolder } from "./folder.ts";
import { folderUrl } from "./loader.ts";
import { createStderrLogger } from "./log_format.ts";
import type { Isolation } from "./manifest.ts";
import { observe } from "./observe.ts";
import { Peers } from "./peers.ts";
import type { Counters, FunctionStatus } from "./status.ts";

/** Where to listen. */
export interface ListenOptions {
  /** The address's host. @default {"127.0.0.1"} */
  readonly hostname?: string;
  /** 0 = any. @default {50051} */
  readonly port?: number;
  /** Other processes that say so too may listen there at the same time, on Linux. @default {false} */
  readonly reusePort?: boolean;
  /**
   * Milliseconds that a client may be silent before it is pinged; Infinity = for ever. Shorter ones keep connections open
   * through proxies that close what is quiet. @default {30_000}
   */
  readonly keepaliveMs?: number;
  /** Milliseconds that a client then has to send anything at all, or its connection is reset. @default {20_000} */
  readonly keepaliveTimeoutMs?: number;
}

/** Where to listen for HTTP. */
export interface HttpListenOptions extends Pick<ListenOptions, "hostname" | "reusePort"> {
  /** 0 = any. @default {8080} */
  readonly port?: number;
  /** Origins whose pages may call from a browser, "*" = any. @default none but the server's own */
  readonly corsOrigins?: readonly string[];
}

/** The options of {@linkcode serve}. */
export interface ServeOptions {
  /** The gRPC listener. */
  readonly grpc?: ListenOptions;
  /** The HTTP listener. @default none */
  readonly http?: HttpListenOptions;
  /** Bounds that differ from their defaults. */
  readonly limits?: Partial<Limits>;
  /** Milliseconds that calls in progress get to finish at a shutdown. @default {10_000} */
  readonly graceMs?: number;
  /** Served after the built-in protocols. */
  readonly adapters?: readonly ProtocolAdapter[];
  /** Around every call; the first is outermost. */
  readonly interceptors?: readonly Interceptor[];
  /** Where sessions are kept; the server does not close it. @default this process's memory */
  readonly sessions?: SessionStore;
  /** For the functions of a folder for which `functions.json` names no level. @default {"worker"} */
  readonly isolation?: Isolation;
  /** Reloads the functions of a folder when their files change. @default {false} */
  readonly watch?: boolean;
  /** Logs a line for each request at `info`. @default {false} */
  readonly accessLog?: boolean;
  /** Where log records go. @default lines on stderr, from `info` on */
  readonly log?: Logger;
  /** Shuts the server down when it aborts. */
  readonly signal?: AbortSignal;
}

/** What only a server's process sets. */
export interface ProcessOptions extends ServeOptions {
  /** What a supervisor has decided of functions that ended server processes. */
  readonly verdicts?: Verdicts;
  /** Imports each function's file in a process of its own, to tell what it is. */
  readonly isCareful?: boolean;
  /** Told when functions' files are imported, and when no more. */
  readonly onDescribing?: (active: boolean) => void;
  /** Told of a function with a verdict whose files have changed. */
  readonly onChanged?: (name: string) => void;
  /** Another process of the server says what is loaded and reloaded: this one only at `debug`. */
  readonly isQuiet?: boolean;
  /** Which of the server's processes this is. @default the only one */
  readonly process?: ProcessPlace | undefined;
  /** Where the processes of this server, and nobody else, reach each other. */
  readonly peersFolder?: string;
  /** Processes that died in this one's place before it. @default {0} */
  readonly restarts?: number;
}

/** Where a server is in its life. */
export type ServerState = "starting" | "ready" | "draining" | "stopped";

/** A server with a worker that goes on for ever: only the end of its process ends it. */
export interface UnfitServer {
  /** Whose worker it is. */
  readonly function: string;
}

/** A server that listens. Disposing it shuts it down. */
export interface Server extends AsyncDisposable {
  /** Where it listens. */
  readonly addresses: { readonly grpc: Deno.NetAddr; readonly http?: Deno.NetAddr };
  /** Where it is in its life. */
  readonly state: ServerState;
  /** What it serves. */
  readonly functions: Catalog;
  /** Resolves when the functions that are marked warm are loaded, or have failed to. */
  readonly ready: Promise<void>;
  /** Resolves when the server has stopped. */
  readonly finished: Promise<void>;
  /** Resolves when a worker cannot be ended. */
  readonly unfit: Promise<UnfitServer>;
  /** Deploys what has changed in the folder of functions; what cannot be loaded stays as it was. */
  reload(): Promise<void>;
  /** What each function does right now. */
  status(): readonly FunctionStatus[];
  /** Finishes the calls in progress, for `graceMs` at most. Called again, it no longer waits for them. */
  shutdown(options?: { readonly graceMs?: number }): Promise<void>;
}

/** Serves a folder of functions, or definitions by name. Rejects where the address cannot be had. */
export async function serve(
  models: URL | string | Readonly<Record<string, AnyModel>>,
  options: ProcessOptions = {},
): Promise<ProcessServer> {
  const log = options.log ?? createStderrLogger("text", "info");
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const registry = new Registry(log);
  logStates(registry, options.isQuiet ? quieter(log) : log);
  const { accessLog = false } = options;
  const instanceMetrics = new InstanceMetrics();
  const { observer, tracing } = observe(instanceMetrics, accessLog);
  const unfit = Promise.withResolvers<UnfitServer>();
  let folder: FunctionFolder | undefined;
  if (typeof models === "string" || models instanceof URL) {
    folder = new FunctionFolder({
      url: folderUrl(`${models}`),
      registry,
      isolation: options.isolation,
      verdicts: options.verdicts,
      watch: options.watch,
      onChanged: options.onChanged,
      isCareful: options.isCareful,
      isQuiet: options.isQuiet,
      onDescribing: options.onDescribing,
      observer,
      onStuck(name) {
        log.error("A worker cannot be ended: its thread goes on until this process ends", { model: name });
        unfit.resolve({ function: name });
      },
      log,
    });
    await folder.load();
  } else {
    for (const [name, definition] of Object.entries(models)) {
      registry.add(inlinePool(resolveModel(definition, name), { observer, log }));
    }
  }
  const peers = options.peersFolder === undefined ? undefined : new Peers(options.peersFolder);
  const assembly = assemble({
    ...limits,
    registry,
    adapters: [...PROTOCOLS, ...options.adapters ?? []],
    interceptors: options.interceptors ?? [],
    ...options.sessions && { sessionStore: options.sessions },
    otherReplays: peers,
    process: options.process,
    accessLog,
    observer,
    tracing,
    instanceMetrics,
    otherMetrics: peers && (() => peers.metrics()),
    restarts: options.restarts,
    log,
  });
  peers?.listen({ open: (...wanted) => assembly.replays.open(...wanted), metrics: () => assembly.metrics() }, log);
  if (!options.isQuiet) assembly.sessions.greet();
  const grpc = await serveGrpc(assembly.services, {
    hostname: options.grpc?.hostname ?? "127.0.0.1",
    port: options.grpc?.port ?? 50051,
    reusePort: options.grpc?.reusePort ?? false,
    keepaliveMs: options.grpc?.keepaliveMs ?? DEFAULT_KEEPALIVE.keepaliveMs,
    keepaliveTimeoutMs: options.grpc?.keepaliveTimeoutMs ?? DEFAULT_KEEPALIVE.keepaliveTimeoutMs,
    maxMessageBytes: limits.maxMessageBytes,
    draining: assembly.draining,
    requestTimeoutMs: limits.unaryTimeoutMs,
    log,
  });
  assembly.addresses.grpc = grpc.address;
  const http = options.http && await listenHttp(options.http, assembly, limits, log).catch(async (error) => {
    await grpc.shutdown(0);
    throw error;
  });
  return new RunningServer(
    {
      registry,
      folder,
      assembly,
      peers,
      grpc,
      http,
      log,
      graceMs: options.graceMs ?? DEFAULT_GRACE_MS,
      unfit: unfit.promise,
    },
    options.signal,
  );
}

function listenHttp(
  { hostname = "127.0.0.1", port = 8080, reusePort = false, corsOrigins = [] }: HttpListenOptions,
  { routes, draining }: Assembly,
  { maxMessageBytes, unaryTimeoutMs }: Limits,
  log: Logger,
): Promise<HttpServer> {
  return serveHttp(routes, {
    hostname,
    port,
    reusePort,
    corsOrigins,
    maxMessageBytes,
    requestTimeoutMs: unaryTimeoutMs,
    draining,
    log,
  });
}

const STATE_LINES: Readonly<Record<ModelState, string>> = {
  registered: "function idle, no instance is left",
  loading: "function loading",
  ready: "function loaded",
  draining: "function draining",
  unloaded: "function unloaded",
  failed: "function failed",
};

// One line for every change of a function's state.
function logStates(registry: Registry, log: Logger): void {
  const states = new Map<number, ModelState>();
  registry.onChange(() => {
    for (const { name, version, revision, state } of registry.entries()) {
      const before = states.get(revision) ?? "registered";
      states.set(revision, state);
      if (state !== before) log.info(STATE_LINES[state], { model: name, version, revision });
    }
    for (const revision of states.keys()) if (!registry.has(revision)) states.delete(revision);
  });
}

interface Parts {
  readonly registry: Registry;
  /** Undefined for definitions in code. */
  readonly folder: FunctionFolder | undefined;
  readonly unfit: Promise<UnfitServer>;
  readonly assembly: Assembly;
  readonly peers: Peers | undefined;
  readonly grpc: GrpcServer;
  readonly http: HttpServer | undefined;
  readonly log: Logger;
  readonly graceMs: number;
}

/** What the clients get to hear that their next calls belong elsewhere, before new calls are refused. */
const NOTICE_MS = 500;
/** What the functions' close and unload get at a shutdown: one that hangs must not keep the process. */
const HOOKS_MS = 5_000;

/** A server as its own process sees it. */
export interface ProcessServer extends Server {
  /** Functions in this process whose calls were in progress at the last time of asking too. */
  busy(): readonly string[];
  /** What tells a function's files from other ones, by name. */
  fingerprints(): Readonly<Record<string, string>>;
  /** What has come and gone. */
  counters(): Counters;
}

class RunningServer implements ProcessServer {
  readonly #parts: Parts;
  readonly #finished = Promise.withResolvers<void>();
  readonly #unfollow: () => void;
  readonly ready: Promise<void>;
  state: ServerState = "starting";
  #stopping: Promise<void> | undefined;
  #mayWait = true;
  #busy: ReadonlySet<string> = new Set();

  constructor(parts: Parts, signal: AbortSignal | undefined) {
    this.#parts = parts;
    this.ready = parts.registry.loadWarm().then(() => {
      if (this.state === "starting") this.state = "ready";
    });
    const onAbort = () => void this.shutdown();
    signal?.addEventListener("abort", onAbort, { once: true });
    this.#unfollow = () => signal?.removeEventListener("abort", onAbort);
    if (signal?.aborted) onAbort();
  }

  get addresses(): { readonly grpc: Deno.NetAddr; readonly http?: Deno.NetAddr } {
    const { grpc, http } = this.#parts;
    return { grpc: grpc.address, ...http && { http: http.address } };
  }

  get functions(): Catalog {
    return this.#parts.registry;
  }

  get unfit(): Promise<UnfitServer> {
    return this.#parts.unfit;
  }

  async reload(): Promise<void> {
    await this.#parts.folder?.reload();
  }

  status(): readonly FunctionStatus[] {
    const { folder, registry } = this.#parts;
    return folder?.status() ?? [...registry.list()].map((entry) => {
      const { name, version, revision, state, kinds, description, input, output, params } = entry;
      return {
        ...{ name, version, revision, state, kinds, description, input, output, params },
        isolation: "inline",
        permissions: "the server's",
        ...registry.statusOf(name, version)!,
      };
    });
  }

  busy(): readonly string[] {
    const before = this.#busy;
    this.#busy = new Set(this.#inProgress());
    return [...this.#busy].filter((name) => before.has(name));
  }

  // What runs in a process of its own cannot end this one.
  #inProgress(): string[] {
    if (!this.#parts.registry.isBusy) return [];
    const busy = this.status().filter(({ busy, isolation }) => busy > 0 && isolation !== "process");
    return busy.map(({ name }) => name);
  }

  fingerprints(): Readonly<Record<string, string>> {
    return this.#parts.folder?.fingerprints() ?? {};
  }

  counters(): Counters {
    const { assembly } = this.#parts;
    const { started, finished, failed } = assembly.counts();
    return {
      callsStarted: started,
      callsFinished: finished,
      callsFailed: failed,
      sessions: assembly.sessions.size,
      rssBytes: Deno.memoryUsage().rss,
    };
  }

  get finished(): Promise<void> {
    return this.#finished.promise;
  }

  shutdown(options: { readonly graceMs?: number } = {}): Promise<void> {
    if (this.#stopping) {
      this.#mayWait = false;
      this.#parts.grpc.abortCalls();
      this.#parts.http?.abortCalls();
    }
    return this.#stopping ??= this.#shutdown(options.graceMs ?? this.#parts.graceMs);
  }

  async #shutdown(graceMs: number): Promise<void> {
    const { assembly, peers, grpc, http, log } = this.#parts;
    this.state = "draining";
    this.#unfollow();
    try {
      const began = performance.now();
      await Promise.all([http?.close(), grpc.announceShutdown(Math.min(graceMs, NOTICE_MS))]);
      assembly.drain();
      await this.#parts.folder?.close();
      const leftMs = graceMs - (performance.now() - began);
      const waitMs = this.#mayWait ? Math.max(0, leftMs) : 0;
      await Promise.all([grpc.shutdown(waitMs), http?.shutdown(waitMs)]);
    } finally {
      try {
        peers?.[Symbol.dispose]();
        const closed = await within(HOOKS_MS, assembly.close());
        if (!closed) log.warn(`Functions took more than ${HOOKS_MS} ms to close and unload; not waited for`);
      } catch (cause) {
        log.error("Cannot stop cleanly", { cause });
      }
      this.state = "stopped";
      this.#finished.resolve();
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.shutdown();
  }
}
