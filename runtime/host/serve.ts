// The composition root: functions, interceptors, protocols and transports become a server.
import { assemble, DEFAULT_GRACE_MS, DEFAULT_LIMITS, type Limits } from "../assembly.ts";
import type { Interceptor } from "../core/call.ts";
import type { Catalog } from "../core/catalog.ts";
import { type AnyModel, resolveModel } from "../core/define.ts";
import type { Logger } from "../core/log.ts";
import { Registry } from "../core/registry.ts";
import { within } from "../core/signal.ts";
import type { SessionStore } from "../middleware/session_store.ts";
import type { ProtocolAdapter } from "../protocols/adapter.ts";
import { PROTOCOLS } from "../protocols/mod.ts";
import { type GrpcServer, serveGrpc } from "../transports/grpc/server.ts";
import { findFunctions, folderUrl, importFunction } from "./loader.ts";
import { createStderrLogger } from "./log_format.ts";
import { readManifest } from "./manifest.ts";

/** Where to listen. */
export interface ListenOptions {
  /** The address's host. @default {"127.0.0.1"} */
  readonly hostname?: string;
  /** 0 = any. @default {50051} */
  readonly port?: number;
  /** Other processes that say so too may listen there at the same time, on Linux. @default {false} */
  readonly reusePort?: boolean;
}

/** The options of {@linkcode serve}. */
export interface ServeOptions {
  /** The gRPC listener. */
  readonly grpc?: ListenOptions;
  /** Bounds that differ from their defaults. */
  readonly limits?: Partial<Limits>;
  /** Milliseconds that calls in progress get to finish at a shutdown. @default {10_000} */
  readonly graceMs?: number;
  /** Served after the built-in protocols. */
  readonly adapters?: readonly ProtocolAdapter[];
  /** Around every call; the first is outermost. */
  readonly interceptors?: readonly Interceptor[];
  /** Where sessions are kept. @default this process's memory */
  readonly sessions?: SessionStore;
  /** Where log records go. @default lines on stderr, from `info` on */
  readonly log?: Logger;
  /** Shuts the server down when it aborts. */
  readonly signal?: AbortSignal;
}

/** Where a server is in its life. */
export type ServerState = "starting" | "ready" | "draining" | "stopped";

/** A server that listens. Disposing it shuts it down. */
export interface Server extends AsyncDisposable {
  /** Where it listens. */
  readonly addresses: { readonly grpc: Deno.NetAddr };
  /** Where it is in its life. */
  readonly state: ServerState;
  /** What it serves. */
  readonly functions: Catalog;
  /** Resolves when the functions that are marked warm are loaded, or have failed to. */
  readonly ready: Promise<void>;
  /** Resolves when the server has stopped. */
  readonly finished: Promise<void>;
  /** Finishes the calls in progress, for `graceMs` at most. Called again, it no longer waits for them. */
  shutdown(options?: { readonly graceMs?: number }): Promise<void>;
}

/** Serves a folder of functions, or definitions by name. Rejects where the address cannot be had. */
export async function serve(
  models: URL | string | Readonly<Record<string, AnyModel>>,
  options: ServeOptions = {},
): Promise<Server> {
  const log = options.log ?? createStderrLogger("text", "info");
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const registry = new Registry(log);
  if (typeof models === "string" || models instanceof URL) {
    await registerFolder(registry, `${models}`, log);
  } else {
    for (const [name, definition] of Object.entries(models)) {
      registry.add(resolveModel(definition, name), { warm: true });
    }
  }
  const assembly = assemble({
    ...limits,
    registry,
    adapters: [...PROTOCOLS, ...options.adapters ?? []],
    interceptors: options.interceptors ?? [],
    ...options.sessions && { sessionStore: options.sessions },
    log,
  });
  const grpc = await serveGrpc(assembly.services, {
    hostname: options.grpc?.hostname ?? "127.0.0.1",
    port: options.grpc?.port ?? 50051,
    reusePort: options.grpc?.reusePort ?? false,
    maxMessageBytes: limits.maxMessageBytes,
    draining: assembly.draining,
    requestTimeoutMs: limits.unaryTimeoutMs,
    log,
  });
  return new RunningServer(
    { registry, assembly, grpc, log, graceMs: options.graceMs ?? DEFAULT_GRACE_MS },
    options.signal,
  );
}

async function registerFolder(registry: Registry, dir: string, log: Logger): Promise<void> {
  const folder = folderUrl(dir);
  const files = await findFunctions(folder);
  const manifest = await readManifest(folder, files.map(({ name }) => name));
  for (const file of files) {
    try {
      const model = await importFunction(file);
      registry.add(model, { base: file.url, ...manifest.settingsOf(file.name) });
    } catch (cause) {
      log.error(`Cannot serve ${decodeURIComponent(file.url.pathname)}`, { cause });
      if (!registry.get(file.name, file.version ?? "1")) registry.addFailed(file.name, file.version ?? "1");
    }
  }
}

interface Parts {
  readonly registry: Registry;
  readonly assembly: ReturnType<typeof assemble>;
  readonly grpc: GrpcServer;
  readonly log: Logger;
  readonly graceMs: number;
}

/** What the functions' close and unload get at a shutdown: one that hangs must not keep the process. */
const HOOKS_MS = 5_000;

class RunningServer implements Server {
  readonly #parts: Parts;
  readonly #finished = Promise.withResolvers<void>();
  readonly #unfollow: () => void;
  readonly ready: Promise<void>;
  state: ServerState = "starting";
  #stopping: Promise<void> | undefined;

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

  get addresses(): { readonly grpc: Deno.NetAddr } {
    return { grpc: this.#parts.grpc.address };
  }

  get functions(): Catalog {
    return this.#parts.registry;
  }

  get finished(): Promise<void> {
    return this.#finished.promise;
  }

  shutdown(options: { readonly graceMs?: number } = {}): Promise<void> {
    if (this.#stopping) this.#parts.grpc.abortCalls();
    return this.#stopping ??= this.#shutdown(options.graceMs ?? this.#parts.graceMs);
  }

  async #shutdown(graceMs: number): Promise<void> {
    const { assembly, grpc, log } = this.#parts;
    this.state = "draining";
    this.#unfollow();
    try {
      assembly.drain();
      await grpc.shutdown(graceMs);
    } finally {
      try {
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
