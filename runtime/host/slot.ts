// Keeps one process serving: replaces it where it died or cannot go on. A supervisor has as many slots as its server has
// processes; what they share is the supervisor's.
import type { Logger } from "../core/log.ts";
import { Child, type ChildEvents, type Exit, type Spawn } from "./child.ts";
import type { Role, Settings, StopSignal } from "./control.ts";
import type { ProcessStatus } from "./status.ts";
import type { Turns } from "./turns.ts";

/** What the slots of a supervisor share. */
export interface SlotHost {
  readonly spawn: Spawn;
  readonly log: Logger;
  /** What the calls of a process that is replaced get. */
  readonly drainMs: number;
  /** Whether two processes can listen at the same time. */
  readonly reusePort: boolean;
  /** Whoever is replaced though it could go on, or reloads, has a turn: one process after the other. */
  readonly turns: Turns;
  /** Whether the server has listened before. */
  readonly hasServed: boolean;
  /** Whether processes that end are not replaced any more. */
  readonly isStopping: boolean;
  /** Answers a process that has said hello. */
  greet(slot: Slot, child: Child, settings: Settings): void;
  onListening(port: number, httpPort: number | undefined): void;
  /** The slot's process is ready. `failed`: the functions that cannot be called. */
  onReady(failed: readonly string[]): void;
  onChanged(name: string): void;
  /** A worker of that function cannot be ended. */
  onUnfit(child: Child, name: string): void;
  /** A process died that was to go on; returns what is to be logged of it. */
  onDeath(child: Child): Readonly<Record<string, unknown>>;
  /** A process has ended in a shutdown. */
  onStopped(): void;
  /** Ends the server with a status. */
  finish(code: number): void;
}

const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 30_000;
/** A process that has served for so long starts with a clean slate. */
const STABLE_MS = 60_000;
/** What a replacement gets to load its warm functions before it takes over all the same. */
const READY_MS = 60_000;
/** What a process gets to end beyond the time that its calls get. */
const RETIRE_EXTRA_MS = 2_000;

/** The place of one process among those of a server. */
export class Slot {
  /** From 1. */
  readonly place: number;
  readonly #host: SlotHost;
  readonly #retiring = new Set<Child>();
  /** The process that takes calls, or will when it has started. */
  #serving: Child | undefined;
  /** The process that is to replace it. */
  #fresh: Child | undefined;
  #role: Role;
  #failures = 0;
  #restarts = 0;
  #launching: ReturnType<typeof setTimeout> | undefined;
  #stable: ReturnType<typeof setTimeout> | undefined;
  #isReloadDue = false;
  /** Ends the turn in which it is replaced, or waits to be. */
  #leaveTurn: (() => void) | undefined;

  constructor(place: number, host: SlotHost) {
    this.place = place;
    this.#role = place === 1 ? "first" : "further";
    this.#host = host;
    this.#serving = this.#launch();
  }

  /** What its next process is to the server. */
  get role(): Role {
    return this.#role;
  }

  /** How many of its processes have died. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Whether its process is ready. */
  get isReady(): boolean {
    return this.#serving?.isReady === true;
  }

  get children(): readonly Child[] {
    return [this.#serving, this.#fresh, ...this.#retiring].filter((child) => child !== undefined);
  }

  /** What its process says of itself; undefined where it does not answer. */
  async status(): Promise<ProcessStatus | undefined> {
    return await this.#serving?.status();
  }

  /** Has its process look at the folder again, when no other one does so. */
  reload(): void {
    if (this.#isReloadDue) return; // it has not begun yet, so it will see everything
    this.#isReloadDue = true;
    this.#host.turns.take(async (leave) => {
      this.#isReloadDue = false;
      await Promise.all([this.#serving?.reload(), this.#fresh?.reload()]);
      leave();
    });
  }

  /** Ends its processes in their grace time. */
  stop(): void {
    clearTimeout(this.#launching);
    clearTimeout(this.#stable);
    for (const child of this.children) {
      // One that does not serve yet has nothing to finish, and one that retires does so already.
      if (!child.listens) child.kill();
      else if (!this.#retiring.has(child)) child.send({ type: "shutdown" });
    }
  }

  /** Ends its processes at once. */
  stopNow(signal: StopSignal): void {
    for (const child of this.children) child.send({ type: "shutdown", now: signal });
  }

  #launch(): Child {
    return new Child(this.#host.spawn, (child) => this.#eventsOf(child));
  }

  #eventsOf(child: Child): ChildEvents {
    const host = this.#host;
    return {
      onHello: (settings) => host.greet(this, child, settings),
      onListening: (port, httpPort) => {
        this.#role = "replacement";
        host.onListening(port, httpPort);
      },
      onReady: (failed) => {
        if (child === this.#fresh) this.#promote(child);
        else if (child === this.#serving) this.#watchStability();
        if (child === this.#serving) host.onReady(failed);
      },
      onUnfit: (name) => this.#onUnfit(child, name),
      onChanged: (name) => host.onChanged(name),
      onExit: (exit) => this.#onExit(child, exit),
    };
  }

  // At once the first time, then later and later.
  #scheduleLaunch(): number {
    const delayMs = this.#failures === 0 ? 0 : Math.min(FIRST_BACKOFF_MS * 2 ** (this.#failures - 1), MAX_BACKOFF_MS);
    this.#failures++;
    this.#launching = setTimeout(() => {
      this.#launching = undefined;
      if (this.#serving) this.#leaveTurn = this.#host.turns.take(() => this.#launchFresh());
      else this.#serving = this.#launch();
    }, delayMs);
    return delayMs;
  }

  #launchFresh(): void {
    const fresh = this.#fresh = this.#launch();
    fresh.deadline = setTimeout(() => {
      if (fresh.listens) return this.#promote(fresh);
      this.#host.log.error(`The new process does not listen after ${READY_MS} ms`, { pid: fresh.pid });
      fresh.kill();
    }, READY_MS);
  }

  #onUnfit(child: Child, name: string): void {
    if (child.unfit !== undefined || this.#retiring.has(child)) return;
    child.unfit = name;
    this.#host.onUnfit(child, name);
    if (child === this.#serving) this.#replaceServing();
  }

  #replaceServing(): void {
    clearTimeout(this.#stable);
    const isUnderWay = this.#fresh !== undefined || this.#launching !== undefined || this.#leaveTurn !== undefined;
    if (this.#host.isStopping || isUnderWay) return;
    this.#scheduleLaunch();
    if (!this.#host.reusePort) this.#retireServing(); // it has to free the port first
  }

  #promote(fresh: Child): void {
    clearTimeout(fresh.deadline);
    this.#fresh = undefined;
    this.#endTurn();
    if (this.#serving) this.#retireServing();
    this.#serving = fresh;
    this.#watchStability();
    if (fresh.unfit !== undefined) this.#replaceServing();
  }

  #endTurn(): void {
    const leave = this.#leaveTurn;
    this.#leaveTurn = undefined;
    leave?.();
  }

  #retireServing(): void {
    const old = this.#serving!;
    const { drainMs, log } = this.#host;
    this.#serving = undefined;
    clearTimeout(this.#stable);
    this.#retiring.add(old);
    old.send({ type: "retire", drainMs });
    old.deadline = setTimeout(() => {
      log.warn("The old process does not end: it is killed", { pid: old.pid });
      old.kill();
    }, drainMs + RETIRE_EXTRA_MS);
  }

  #watchStability(): void {
    clearTimeout(this.#stable);
    this.#stable = setTimeout(() => this.#failures = 0, STABLE_MS);
  }

  #onExit(child: Child, exit: Exit): void {
    const host = this.#host;
    const isRetired = this.#retiring.delete(child);
    const wasServing = child === this.#serving;
    if (wasServing) this.#serving = undefined;
    if (child === this.#fresh) this.#fresh = undefined;
    if (host.isStopping) return host.onStopped();
    const how = { pid: child.pid, ...describeExit(exit) };
    if (isRetired) return host.log.info("The old process has ended", how);
    // What it printed says why; another one would fail in the same way.
    if (!host.hasServed && exit.code !== null) return host.finish(exit.code);
    this.#restarts++;
    const fields = { ...how, ...host.onDeath(child) };
    const what = wasServing ? "The server's process died" : "The process that was to take over died";
    if (wasServing && this.#fresh) {
      host.log.error(`${what}: the new one takes over`, fields);
      return this.#promote(this.#fresh);
    }
    this.#endTurn(); // nobody is there any more for whom it could wait, or it has had it
    if (wasServing) clearTimeout(this.#stable);
    if (this.#launching !== undefined) return host.log.error(`${what}: another one is about to start`, fields);
    const restartInMs = this.#scheduleLaunch();
    host.log.error(`${what}: another one is started`, { ...fields, restartInMs });
  }
}

function describeExit({ code, signal, error }: Exit): Readonly<Record<string, unknown>> {
  if (error !== undefined) return { error };
  return signal !== null ? { signal } : { status: code };
}
