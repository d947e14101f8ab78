// The functions that are served: which load of which version answers a call, and what takes the place of what.
import type { Call, Invoke, SessionSnapshot } from "./call.ts";
import type { Catalog, CatalogEntry } from "./catalog.ts";
import type { SessionBounds, SessionEnd } from "./define.ts";
import type { Deployment, DeploymentStatus, InstanceStates } from "./deployment.ts";
import { ModelError, quote } from "./error.ts";
import type { Logger } from "./log.ts";

/** A function's version, and the loads of it that are alive. */
interface Version {
  readonly name: string;
  readonly version: string;
  current: Deployed;
}

interface Deployed {
  readonly entry: { -readonly [K in keyof CatalogEntry]: CatalogEntry[K] };
  /** Undefined where the file cannot be read. */
  readonly deployment: Deployment | undefined;
  /** Sessions that stay with it. */
  pins: number;
  retired: boolean;
  closing: Promise<void> | undefined;
}

/** Keeps the load of a function on which a session began. */
export interface Pin {
  readonly version: string;
  readonly revision: number;
  /** The session has ended. */
  release(): void;
}

/** A load of a function, and what it does right now. */
export interface LoadStatus {
  readonly entry: CatalogEntry;
  readonly status: DeploymentStatus;
  readonly instances: InstanceStates;
}

/** Replaced loads of one version that stay for their sessions; the idle sessions of older ones are ended. */
const MAX_RETIRED = 4;

/** The functions of a server. */
export class Registry implements Catalog {
  /** By name, the newest version first: it is the default. */
  readonly #versions: Version[] = [];
  /** Every load that is alive, the oldest first. */
  readonly #deployed = new Map<number, Deployed>();
  readonly #weights = new Map<string, Readonly<Record<string, number>>>();
  readonly #log: Logger;
  readonly #listeners = new Set<() => void>();
  #closed = false;
  #revisions = 0;

  /** Told of a replaced load that stays for its sessions though newer replaced ones do too. */
  onCrowded: (revision: number) => void = () => {};

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Adds a version of a function; throws `RangeError` where its name and version are taken. */
  add(deployment: Deployment): void {
    const { name, version } = deployment.description;
    if (this.#find(name, version)) {
      throw new RangeError(`Cannot register function "${name}" version "${version}": there is one already`);
    }
    this.#put(name, version, this.#deploy(deployment));
  }

  /** Adds a version of a function, or puts it in the place of the one that answers now, which finishes its calls. */
  deploy(deployment: Deployment): void {
    const { name, version } = deployment.description;
    this.#put(name, version, this.#deploy(deployment));
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
      batching: undefined,
    };
    const entry = { name, version, ...nothing, state: "failed", revision: ++this.#revisions } as const;
    this.#put(name, version, { entry, deployment: undefined, pins: 0, retired: false, closing: undefined });
  }

  /** Takes a version out: new calls do not find it, those in progress finish. */
  remove(name: string, version: string): void {
    const found = this.#find(name, version);
    if (!found) return;
    this.#versions.splice(this.#versions.indexOf(found), 1);
    this.#retire(found.current);
    this.#notify();
  }

  /** Splits the calls of a function that name no version by weight. */
  setWeights(name: string, weights: Readonly<Record<string, number>> | undefined): void {
    if (weights) this.#weights.set(name, weights);
    else this.#weights.delete(name);
  }

  *list(): Iterable<CatalogEntry> {
    for (const { current } of this.#versions) yield current.entry;
  }

  /** Every load that is alive: also those that are replaced and finish their calls and sessions. */
  *entries(): Iterable<CatalogEntry> {
    for (const { entry } of this.#deployed.values()) yield entry;
  }

  /** What every load that is alive does. */
  *loads(): Iterable<LoadStatus> {
    for (const { entry, deployment } of this.#deployed.values()) {
      yield { entry, status: deployment!.status, instances: deployment!.instanceStates };
    }
  }

  /** Whether a load is alive. */
  has(revision: number): boolean {
    return this.#deployed.has(revision);
  }

  get(name: string, version?: string): CatalogEntry | undefined {
    return this.#find(name, version)?.current.entry;
  }

  route(name: string): CatalogEntry | undefined {
    return this.#routed(name)?.current.entry;
  }

  /** The entry of the load that answers a call; throws `not_found`. */
  entryOf(call: Pick<Call, "model" | "version" | "revision">): CatalogEntry {
    return this.#of(call).entry;
  }

  /** A conversation's bounds on the load that answers it; throws `not_found`. */
  sessionBoundsOf(call: Pick<Call, "model" | "version" | "revision">): SessionBounds {
    return deploymentOf(this.#of(call)).description.session;
  }

  /** What the current load of a version does; undefined where its file cannot be read. */
  statusOf(name: string, version: string): DeploymentStatus | undefined {
    return this.#find(name, version)?.current.deployment?.status;
  }

  /** How many instances the load that answers a call may have, and whether one has room; throws `not_found`. */
  roomOf(
    call: Pick<Call, "model" | "version" | "revision">,
  ): { readonly instances: number; readonly hasRoom: boolean } {
    const { status, hasRoom } = deploymentOf(this.#of(call));
    return { instances: status.maxInstances, hasRoom };
  }

  /** Whether a call is in progress. */
  get isBusy(): boolean {
    return [...this.#deployed.values()].some(({ deployment }) => deployment!.status.busy > 0);
  }

  /** Whether it is loaded at the start. */
  isWarm(entry: CatalogEntry): boolean {
    return this.#deployed.get(entry.revision)?.deployment?.warm === true;
  }

  /** Calls `listener` after every change of a function's state; returns what takes it back. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Runs calls on the load that they were routed to, or on the current one. */
  readonly invoke: Invoke = (call) => deploymentOf(this.#of(call)).invoke(call);

  /** Keeps the load that answers a call until the session that begins with it has ended. */
  pin(call: Pick<Call, "model" | "version" | "revision">): Pin {
    const found = this.#of(call);
    found.pins++;
    let held = true;
    const release = () => {
      if (!held) return;
      held = false;
      found.pins--;
      this.#closeRetired(found);
    };
    return { version: found.entry.version, revision: found.entry.revision, release };
  }

  /** Loads the functions that are marked so; failures are logged and show in their state. */
  async loadWarm(): Promise<void> {
    const warm = this.#versions.flatMap(({ current: { deployment } }) => deployment?.warm ? [deployment] : []);
    await Promise.allSettled(warm.map((deployment) => deployment.start()));
  }

  /** Loads every version of a function; rejects where that fails. */
  async load(name: string): Promise<void> {
    const deployments = this.#versions.filter((each) => each.name === name).map(({ current }) => deploymentOf(current));
    await Promise.all(deployments.map((deployment) => deployment.start()));
  }

  /** Takes every version of a function out of service until it is loaded again. */
  unload(name: string): void {
    for (const version of this.#versions) if (version.name === name) version.current.deployment?.unload();
  }

  /** Runs the function's `close` for a session that has ended, on the load that served it. */
  async endSession(revision: number, snapshot: SessionSnapshot, reason: SessionEnd): Promise<void> {
    await this.#deployed.get(revision)?.deployment?.endSession(snapshot, reason);
  }

  /** Unloads every function, the last one first; failures are logged. */
  async closeAll(): Promise<void> {
    this.#closed = true;
    for (const deployed of [...this.#deployed.values()].reverse()) await this.#close(deployed);
  }

  #deploy(deployment: Deployment): Deployed {
    const { session: _session, hasClose: _hasClose, ...description } = deployment.description;
    const revision = ++this.#revisions;
    const { state } = deployment;
    const entry = { ...description, state, revision };
    const deployed: Deployed = { entry, deployment, pins: 0, retired: false, closing: undefined };
    this.#deployed.set(revision, deployed);
    deployment.onChange(() => {
      entry.state = deployment.state;
      this.#notify();
    });
    return deployed;
  }

  #put(name: string, version: string, deployed: Deployed): void {
    const found = this.#find(name, version);
    if (found) {
      const replaced = found.current;
      found.current = deployed;
      this.#retire(replaced);
    } else {
      this.#versions.push({ name, version, current: deployed });
      this.#versions.sort((a, b) =>
        a.name.localeCompare(b.name) || b.version.localeCompare(a.version, undefined, { numeric: true })
      );
    }
    this.#notify();
  }

  #retire(deployed: Deployed): void {
    deployed.retired = true;
    this.#closeRetired(deployed);
    const { name, version } = deployed.entry;
    const waiting = [...this.#deployed.values()].filter(({ entry, retired, pins }) =>
      retired && pins > 0 && entry.name === name && entry.version === version
    );
    for (const { entry } of waiting.slice(0, -MAX_RETIRED)) this.onCrowded(entry.revision);
  }

  #closeRetired(deployed: Deployed): void {
    if (deployed.retired && deployed.pins === 0) this.#close(deployed);
  }

  #close(deployed: Deployed): Promise<void> {
    const { deployment, entry } = deployed;
    return deployed.closing ??= (async () => {
      try {
        await deployment?.close();
      } catch (cause) {
        this.#log.error("Cannot unload the function", { model: entry.name, version: entry.version, cause });
      } finally {
        this.#deployed.delete(entry.revision);
      }
    })();
  }

  #of({ model, version, revision }: Pick<Call, "model" | "version" | "revision">): Deployed {
    if (this.#closed) throw new ModelError("unavailable", "The server is shutting down");
    const deployed = revision === undefined ? undefined : this.#deployed.get(revision);
    // One that closed since the call was routed to it has a successor.
    const found = deployed && !deployed.closing ? deployed : this.#find(model, version)?.current;
    if (!found) throw new ModelError("not_found", `There is no model ${quote(model)}`);
    return found;
  }

  #find(name: string, version: string | undefined): Version | undefined {
    return this.#versions.find((each) => each.name === name && (version === undefined || each.version === version));
  }

  #routed(name: string): Version | undefined {
    const weights = this.#weights.get(name);
    if (!weights) return this.#find(name, undefined);
    const shares = this.#versions.flatMap((each) => {
      const weight = each.name === name ? weights[each.version] ?? 0 : 0;
      return weight > 0 ? [{ each, weight }] : [];
    });
    let drawn = Math.random() * shares.reduce((sum, { weight }) => sum + weight, 0);
    const hit = shares.find(({ weight }) => (drawn -= weight) < 0) ?? shares.at(-1);
    return hit?.each ?? this.#find(name, undefined);
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}

function deploymentOf({ deployment, entry }: Deployed): Deployment {
  if (deployment) return deployment;
  throw new ModelError("unavailable", `Function "${entry.name}" cannot be loaded; the server's log says why`);
}
