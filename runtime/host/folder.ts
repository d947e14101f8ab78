// The functions of a folder, as it is now: finds them, describes them, deploys them, and does so again when it changes.
import type { ModelDescription } from "../core/define.ts";
import { describeModel, type ResolvedModel } from "../core/define.ts";
import type { Logger } from "../core/log.ts";
import { quieter, withFields } from "../core/log.ts";
import type { Observer } from "../core/observer.ts";
import type { Registry } from "../core/registry.ts";
import { Pool } from "../workers/pool.ts";
import { type FoundFunction, scanFolder } from "./scan.ts";
import { type Described, describeFunctions, launcherOf } from "./launch.ts";
import type { Verdict } from "./control.ts";
import type { FunctionStatus } from "./status.ts";
import { ConfigError } from "./error.ts";
import { type Isolation, shownPermissions } from "./manifest.ts";
import { watchFolder } from "./watch.ts";

/** The options of {@linkcode FunctionFolder}. */
export interface FolderOptions {
  readonly url: URL;
  readonly registry: Registry;
  /** For functions for which `functions.json` names no level. @default "worker" */
  readonly isolation?: Isolation | undefined;
  readonly verdicts?: Readonly<Record<string, Verdict>> | undefined;
  /** Told of a function whose worker cannot be ended. */
  readonly onStuck: (name: string) => void;
  /** Told when the file of a function with a verdict has changed. */
  readonly onChanged?: ((name: string) => void) | undefined;
  /** Imports each file in a process of its own, to tell what it is. */
  readonly isCareful?: boolean | undefined;
  /** Told when files are imported, and when no more. */
  readonly onDescribing?: ((active: boolean) => void) | undefined;
  /** Reloads what has changed by itself; else only what has failed. */
  readonly watch?: boolean | undefined;
  /** Says only at `debug` what goes as planned; what functions log is as it was. */
  readonly isQuiet?: boolean | undefined;
  /** Told of the calls and instances of every function. */
  readonly observer?: Observer | undefined;
  readonly log: Logger;
}

/** A function that is served, or that failed to be. */
interface Served {
  readonly found: FoundFunction;
  readonly name: string;
  readonly version: string;
  /** Undefined: it failed before it could be deployed. */
  readonly pool: Pool | undefined;
}

/** Keeps a registry in step with a folder. */
export class FunctionFolder {
  readonly #options: FolderOptions;
  readonly #log: Logger;
  /** By file. */
  readonly #served = new Map<string, Served>();
  /** Names with a verdict that still holds. */
  readonly #verdicts: Map<string, Verdict>;
  #reloading: Promise<void> = Promise.resolve();
  #reloads = 0;
  #closed = false;
  #unwatch: () => void = () => {};

  constructor(options: FolderOptions) {
    this.#options = options;
    this.#log = options.isQuiet ? quieter(options.log) : options.log;
    this.#verdicts = new Map(Object.entries(options.verdicts ?? {}));
  }

  /** Deploys every function, and watches for changes. Throws `ConfigError` where the folder or its `functions.json` cannot be meant. */
  async load(): Promise<void> {
    // Before it is read: what changes meanwhile is looked at afterwards.
    const loading = this.#load();
    this.#reloading = loading.catch(() => {});
    await loading;
  }

  async #load(): Promise<void> {
    const cause = this.#watch();
    try {
      const functions = await this.#scan();
      if (cause !== undefined) {
        this.#log.warn("Changes of files are not noticed, only SIGHUP: the folder cannot be watched", { cause });
      }
      const described = await this.#describe(functions);
      for (const found of functions) {
        try {
          this.#deploy(found, this.#poolOf(found, settledValue(described.get(found)!)));
        } catch (cause) {
          this.#log.error(`Cannot serve ${found.path}`, { cause });
          this.#fail(found);
        }
      }
      const problem = this.#setWeights(functions);
      if (problem !== undefined) throw new ConfigError(problem);
    } catch (error) {
      this.#unwatch();
      throw error;
    }
  }

  // Returns why it cannot.
  #watch(): unknown {
    try {
      this.#unwatch = watchFolder(this.#options.url, () => this.#onChange());
      return undefined;
    } catch (cause) {
      return cause;
    }
  }

  async #onChange(): Promise<void> {
    await this.#reloading; // it may find out what has failed
    if (this.#options.watch || this.#hasFailures()) await this.reload();
  }

  // Whether a function waits for a change of its file.
  #hasFailures(): boolean {
    return [...this.#served.values()].some(({ pool }) => pool === undefined || pool.state === "failed");
  }

  /** Deploys what has changed since; what cannot be loaded stays as it was. Logs what it does; never rejects. */
  reload(): Promise<void> {
    return this.#reloading = this.#reloading.then(() => this.#reload()).catch((cause) => {
      this.#log.error("Cannot reload", { cause });
    });
  }

  /** What each version does right now. */
  status(): FunctionStatus[] {
    return [...this.#options.registry.list()].map((entry) => {
      const { name, version, revision, state, kinds, description, input, output, params } = entry;
      const candidates = [...this.#served.values()].filter((each) => each.name === name && each.version === version);
      const served = candidates.find(({ pool }) => pool) ?? candidates[0]!;
      const { settings } = served.found;
      const none = { instances: 0, maxInstances: 0, busy: 0, queued: 0 };
      return {
        ...{ name, version, revision, state, kinds, description, input, output, params },
        isolation: settings.isolation,
        permissions: shownPermissions(settings),
        ...served.pool?.status ?? none,
      };
    });
  }

  /** What tells a function's files from other ones, by name. */
  fingerprints(): Record<string, string> {
    return fingerprintsOf([...this.#served.values()].map(({ found }) => found));
  }

  /** No more reloads. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#unwatch();
    await this.#reloading;
  }

  async #scan(): Promise<readonly FoundFunction[]> {
    const functions = await scanFolder(this.#options.url, this.#options.isolation);
    const marks = fingerprintsOf(functions);
    for (const [name, verdict] of this.#verdicts) {
      if (verdict.fingerprint === undefined || verdict.fingerprint === marks[name]) continue;
      this.#verdicts.delete(name);
      this.#options.onChanged?.(name);
    }
    return functions.map((found) => this.#judged(found));
  }

  // A verdict moves a function to a process of its own, unless the host chose its level.
  #judged(found: FoundFunction): FoundFunction {
    const verdict = this.#verdicts.get(found.name);
    if (verdict?.isolation === undefined || found.settings.isolationPinned) return found;
    return { ...found, settings: { ...found.settings, isolation: verdict.isolation } };
  }

  async #reload(): Promise<void> {
    if (this.#closed) return;
    this.#reloads++;
    const { registry } = this.#options;
    const log = this.#log;
    let functions: readonly FoundFunction[];
    try {
      functions = await this.#scan();
    } catch (cause) {
      log.error("Cannot reload: everything stays as it is", { cause });
      return;
    }
    const files = new Set(functions.map(({ url }) => url.href));
    for (const [file, { name, version }] of this.#served) {
      if (files.has(file)) continue;
      this.#served.delete(file);
      registry.remove(name, version);
      log.info("removed", { model: name, version });
    }
    const changed = functions.filter(({ url, fingerprint }) =>
      this.#served.get(url.href)?.found.fingerprint !== fingerprint
    );
    const described = await this.#describe(changed);
    await Promise.all(
      changed.map((found) => this.#replace(this.#served.get(found.url.href), found, described.get(found)!)),
    );
    const problem = this.#setWeights(functions);
    if (problem !== undefined) log.error(problem);
  }

  // The new one loads beside the old, and takes over only when it can be called.
  async #replace(before: Served | undefined, found: FoundFunction, described: Described): Promise<void> {
    const { registry } = this.#options;
    const log = this.#log;
    const start = performance.now();
    let pool: Pool | undefined;
    try {
      pool = this.#poolOf(found, settledValue(described));
      const isInUse = before?.pool !== undefined && before.pool.status.instances > 0;
      if (isInUse || pool.warm) await pool.start();
      if (this.#closed) throw new Error("The server is shutting down");
      this.#deploy(found, pool);
    } catch (cause) {
      await pool?.close();
      const stays = before?.pool !== undefined;
      log.error(`Cannot ${before ? "reload" : "serve"} ${found.path}${stays ? ": what was served stays" : ""}`, {
        cause,
      });
      if (stays) {
        this.#served.set(found.url.href, { ...before, found: { ...before.found, fingerprint: found.fingerprint } });
      } else this.#fail(found);
      return;
    }
    const { name, version } = pool.description;
    if (before && (before.name !== name || before.version !== version)) registry.remove(before.name, before.version);
    log.info(before ? "reloaded" : "added", { model: name, version, ms: Math.round(performance.now() - start) });
  }

  #deploy(found: FoundFunction, pool: Pool): void {
    const { registry } = this.#options;
    const { name, version } = pool.description;
    const other = [...this.#served.values()].find((served) => served.name === name && served.version === version);
    if (other && other.found.url.href !== found.url.href) {
      throw new RangeError(
        `Cannot register function "${name}" version "${version}": ${other.found.path} is it already`,
      );
    }
    registry.deploy(pool);
    this.#served.set(found.url.href, { found, name, version, pool });
  }

  #fail(found: FoundFunction): void {
    const { name, url } = found;
    const version = found.version ?? "1";
    const isTaken = this.#options.registry.get(name, version) !== undefined && !this.#served.has(url.href);
    if (!isTaken) this.#options.registry.addFailed(name, version);
    this.#served.set(url.href, { found, name, version, pool: undefined });
  }

  async #describe(functions: readonly FoundFunction[]): Promise<ReadonlyMap<FoundFunction, Described>> {
    const { log, onStuck } = this.#options;
    // Where the host lets it be moved to a process, it harms only itself.
    const failed = ({ name, settings }: FoundFunction) =>
      this.#verdicts.get(name)?.failed === true && settings.isolationPinned;
    const { isCareful = false, onDescribing } = this.#options;
    onDescribing?.(true);
    const described = await describeFunctions(functions.filter((found) => !failed(found)), {
      log,
      onStuck,
      isCareful,
      reloads: this.#reloads,
    });
    onDescribing?.(false);
    for (const found of functions.filter(failed)) {
      const reason = new Error(`It is not run until its file changes: ${this.#verdicts.get(found.name)!.why}`);
      described.set(found, { status: "rejected", reason });
    }
    return described;
  }

  #poolOf(found: FoundFunction, model: ModelDescription | ResolvedModel): Pool {
    const { settings } = found;
    const { observer } = this.#options;
    const log = this.#logOf(found);
    const description = "handlers" in model ? describeModel(model) : model;
    const launch = launcherOf(found, model, {
      log,
      onStuck: () => this.#options.onStuck(description.name),
      onDrift: () => void this.reload(),
    });
    return new Pool({ description, limits: settings, warm: settings.warm, launch, observer, log });
  }

  #logOf(found: FoundFunction): Logger {
    return withFields(this.#options.log, { model: found.name });
  }

  // What is wrong with them: a version that there is not.
  #setWeights(functions: readonly FoundFunction[]): string | undefined {
    const all = [...this.#served.values()];
    for (const { name, settings: { weights } } of functions) {
      const versions = all.filter((served) => served.name === name).map(({ version }) => version);
      const unknown = Object.keys(weights ?? {}).find((version) => !versions.includes(version));
      if (unknown !== undefined) {
        const known = versions.map((version) => `"${version}"`).join(", ");
        return `Cannot read functions.json: "weights" of "${name}" is of a version "${unknown}"; there is ${known}`;
      }
      this.#options.registry.setWeights(name, weights);
    }
    return undefined;
  }
}

function fingerprintsOf(functions: readonly FoundFunction[]): Record<string, string> {
  const marks: Record<string, string> = {};
  for (const { name, fingerprint } of functions) marks[name] = (marks[name] ?? "") + fingerprint;
  return marks;
}

function settledValue<T>(result: PromiseSettledResult<T>): T {
  if (result.status === "rejected") throw result.reason;
  return result.value;
}
