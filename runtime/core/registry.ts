// The functions that are served: their states, loading them once and on demand, running their calls.
import type { Call, Invoke, Reply, SessionSnapshot } from "./call.ts";
import type { Catalog, CatalogEntry, ModelState } from "./catalog.ts";
import type { ResolvedModel, SessionEnd } from "./define.ts";
import { ModelError, quote } from "./error.ts";
import { createExecutor } from "./execute.ts";
import { type Logger, withFields } from "./log.ts";
import { abortable } from "./signal.ts";

/** How a function is kept. */
export interface RegistrationOptions {
  /** Its file: `asset()` resolves against it. */
  readonly base?: URL;
  /** Loaded at the start, and part of the server's health. @default {false} */
  readonly warm?: boolean;
  /** What `load` would return: used instead of running it. */
  readonly loaded?: { readonly value: unknown };
}

interface Registered {
  readonly entry: { -readonly [K in keyof CatalogEntry]: CatalogEntry[K] };
  /** Undefined where its file cannot be read. */
  readonly model: ResolvedModel | undefined;
  readonly options: RegistrationOptions;
  loading: Promise<Running> | undefined;
  running: Running | undefined;
  failures: number;
  retryAt: number;
  retryTimer: ReturnType<typeof setTimeout> | undefined;
}

interface Running {
  readonly loaded: unknown;
  readonly execute: Invoke;
}

const MAX_RETRY_MS = 60_000;

/** The functions of a server. */
export class Registry implements Catalog {
  /** By name, the newest version first: it is the default. */
  readonly #functions: Registered[] = [];
  readonly #registered: Registered[] = [];
  readonly #log: Logger;
  readonly #closed = new AbortController();
  readonly #listeners = new Set<() => void>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Adds a function; throws `RangeError` where its name and version are taken. */
  add(model: ResolvedModel, options: RegistrationOptions = {}): void {
    const { name, version, description, input, output, params, kinds, maxBatch } = model;
    this.#add(
      { name, version, description, input, output, params, kinds, maxBatch, state: "registered" },
      model,
      options,
    );
  }

  /** Adds a function whose file cannot be read, so that callers learn of it. */
  addFailed(name: string, version: string): void {
    const nothing = {
      description: undefined,
      input: undefined,
      output: undefined,
      params: undefined,
      kinds: [],
      maxBatch: 1,
    };
    this.#add({ name, version, ...nothing, state: "failed" }, undefined, {});
  }

  #add(entry: Registered["entry"], model: ResolvedModel | undefined, options: RegistrationOptions): void {
    if (this.#find(entry.name, entry.version)) {
      throw new RangeError(`Cannot register function "${entry.name}" version "${entry.version}": there is one already`);
    }
    const added = {
      entry,
      model,
      options,
      loading: undefined,
      running: undefined,
      failures: 0,
      retryAt: 0,
      retryTimer: undefined,
    };
    this.#registered.push(added);
    this.#functions.push(added);
    this.#functions.sort((a, b) =>
      a.entry.name.localeCompare(b.entry.name) ||
      b.entry.version.localeCompare(a.entry.version, undefined, { numeric: true })
    );
  }

  *list(): Iterable<CatalogEntry> {
    for (const { entry } of this.#functions) yield entry;
  }

  get(name: string, version?: string): CatalogEntry | undefined {
    return this.#find(name, version)?.entry;
  }

  /** The function's entry; throws `not_found`. */
  entryOf(name: string, version: string | undefined): CatalogEntry {
    const found = this.#find(name, version);
    if (!found) throw notFound(name);
    return found.entry;
  }

  /** The function's definition; throws `not_found`. */
  modelOf(name: string, version: string | undefined): ResolvedModel {
    const model = this.#find(name, version)?.model;
    if (!model) throw notFound(name);
    return model;
  }

  /** Whether it is loaded at the start. */
  isWarm(entry: CatalogEntry): boolean {
    return this.#find(entry.name, entry.version)?.options.warm === true;
  }

  /** Calls `listener` after every change of a function's state; returns what takes it back. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Runs calls, loading their function first where it is not loaded yet. */
  readonly invoke: Invoke = (call) => {
    const found = this.#find(call.model, call.version);
    if (!found) throw notFound(call.model);
    return found.running ? found.running.execute(call) : this.#loadAndRun(found, call);
  };

  async *#loadAndRun(found: Registered, call: Call): AsyncIterable<Reply, void, undefined> {
    const running = await abortable(this.#load(found), call.signal);
    yield* running.execute(call);
  }

  /** Loads the functions that are marked so; failures are logged and show in their state. */
  async loadWarm(): Promise<void> {
    const warm = this.#functions.filter(({ options, model }) => options.warm && model);
    await Promise.allSettled(warm.map((found) => this.#load(found)));
  }

  // Concurrent first calls share one load.
  #load(found: Registered): Promise<Running> {
    if (found.running) return Promise.resolve(found.running);
    return found.loading ??= this.#start(found).finally(() => found.loading = undefined);
  }

  async #start(found: Registered): Promise<Running> {
    const { model, options, entry } = found;
    this.#closed.signal.throwIfAborted();
    if (!model || Date.now() < found.retryAt) throw loadFailure(entry.name, found.retryAt - Date.now());
    this.#setState(found, "loading");
    const log = withFields(this.#log, { model: entry.name });
    const start = performance.now();
    try {
      const loaded = options.loaded ? options.loaded.value : await model.handlers.load?.({
        name: entry.name,
        signal: this.#closed.signal,
        log,
        asset: (path) => assetOf(options.base, path),
      });
      found.running = { loaded, execute: createExecutor({ model, loaded, log }) };
      found.failures = 0;
      this.#setState(found, "ready");
      log.debug("loaded", { ms: Math.round(performance.now() - start) });
      return found.running;
    } catch (cause) {
      const delayMs = Math.min(1000 * 2 ** found.failures++, MAX_RETRY_MS);
      found.retryAt = Date.now() + delayMs;
      this.#setState(found, "failed");
      log.error("Cannot load the function", { version: entry.version, retryMs: delayMs, cause });
      this.#retryLater(found, delayMs);
      throw loadFailure(entry.name, delayMs, cause);
    }
  }

  // No call may come for a warm function that failed: health keeps them away.
  #retryLater(found: Registered, delayMs: number): void {
    if (!found.options.warm || this.#closed.signal.aborted) return;
    found.retryTimer = setTimeout(() => this.#load(found).catch(() => {}), delayMs);
  }

  /** Runs the function's `close` for a session that has ended. */
  async endSession(
    name: string,
    version: string | undefined,
    snapshot: SessionSnapshot,
    reason: SessionEnd,
  ): Promise<void> {
    const close = this.#find(name, version)?.model?.handlers.close;
    await close?.({ ...snapshot }, reason);
  }

  /** Unloads every function, the last registered first; failures are logged. */
  async unloadAll(): Promise<void> {
    this.#closed.abort(new ModelError("unavailable", "The server is shutting down"));
    for (const { retryTimer } of this.#registered) clearTimeout(retryTimer);
    for (const found of this.#registered.toReversed()) {
      const running = found.running ?? await found.loading?.catch(() => undefined);
      if (!running) continue;
      found.running = undefined;
      this.#setState(found, "unloaded");
      try {
        await found.model!.handlers.unload?.(running.loaded);
      } catch (cause) {
        this.#log.error("Cannot unload the function", { model: found.entry.name, cause });
      }
    }
  }

  #find(name: string, version: string | undefined): Registered | undefined {
    return this.#functions.find(({ entry }) =>
      entry.name === name && (version === undefined || entry.version === version)
    );
  }

  #setState(found: Registered, state: ModelState): void {
    found.entry.state = state;
    for (const listener of this.#listeners) listener();
  }
}

function notFound(name: string): ModelError {
  return new ModelError("not_found", `There is no model ${quote(name)}`);
}

function loadFailure(name: string, delayMs: number, cause?: unknown): ModelError {
  return new ModelError("unavailable", `Function "${name}" cannot be loaded; the server's log says why`, {
    details: { retryAfterMs: Math.max(1, delayMs) },
    cause,
  });
}

function assetOf(base: URL | undefined, path: string): URL {
  if (base === undefined) throw new TypeError("Cannot resolve an asset: the function has no file");
  return new URL(path, base);
}
