// Keeps a server running: as many processes as it is to have, each in a slot that replaces it, and what they share: one
// port, what is known of functions that end processes, the turns in which they reload, the end. Knows neither processes
// nor signals: those are handed in. Light: imports nothing of the server.
import { type Logger, withFields } from "../core/log.ts";
import { Blame } from "./blame.ts";
import type { Child, Spawn } from "./child.ts";
import { type Settings, SIGNALS, type StopSignal } from "./control.ts";
import { Slot, type SlotHost } from "./slot.ts";
import { mergeStatuses, type ServerStatus } from "./status.ts";
import { Turns } from "./turns.ts";

/** What a supervisor works with. */
export interface SupervisorOptions {
  readonly spawn: Spawn;
  /** Before `settings` are known, those that are usual. */
  readonly createLog: (settings: Settings | undefined) => Logger;
  /** Whether nobody may listen there, because somebody does; says so. */
  readonly refusesPort: (settings: Settings) => boolean;
  /** The port for HTTP; undefined = none. */
  readonly httpPortOf: (settings: Settings) => number | undefined;
  /** Makes a folder for what several processes share; undefined where it cannot, which it has said. */
  readonly makeFolder: () => string | undefined;
  /** Whether two processes can listen at the same time. */
  readonly reusePort: boolean;
  /** The server listens for the first time. */
  readonly onListening?: (port: number) => void;
}

/** Misuse of the command line, as for shells. */
const USAGE_ERROR = 2;
const SHUTDOWN_EXTRA_MS = 10_000;
const NOW_MS = 500;

const DEFAULT_TIMES = { graceMs: 10_000, drainMs: 10_000 };

/** Keeps a server's processes serving. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #blame = new Blame();
  readonly #turns = new Turns();
  readonly #finished = Promise.withResolvers<number>();
  readonly #slots: Slot[] = [];
  #log: Logger;
  #settings: Settings | undefined;
  /** What the processes share; undefined where there is only one. */
  #folder: string | undefined;
  #port = 0;
  #httpPort: number | undefined;
  /** `performance.now()` when the server began to listen. */
  #servedSince: number | undefined;
  #isFinished = false;
  /** Functions that some process could not load; undefined when it has been said that all are ready. */
  #failed: Set<string> | undefined = new Set();
  /** Importing a function's file has ended a process. */
  #isCareful = false;
  #stopping: { readonly deadline: ReturnType<typeof setTimeout>; readonly code: number } | undefined;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#log = options.createLog(undefined);
    // The others join the first one when it has found what there is to serve, and its port.
    this.#addSlot();
  }

  /** Resolves with the exit status, when no process is left. */
  get finished(): Promise<number> {
    return this.#finished.promise;
  }

  /** Ends the processes in their grace time; the second time at once. */
  stop(signal: StopSignal): void {
    if (this.#stopping) this.#stopNow(signal);
    else this.#stop(signal);
  }

  /** Has the processes look at their folder again, one after the other. */
  reload(): void {
    if (!this.#stopping) { for (const slot of this.#slots) slot.reload(); }
  }

  /** What the server says of itself; undefined where none of its processes answers. */
  async status(): Promise<ServerStatus | undefined> {
    const statuses = await Promise.all(this.#slots.map((slot) => slot.status()));
    return mergeStatuses(statuses.filter((status) => status !== undefined), this.#slots.length);
  }

  #addSlot(): void {
    const place = this.#slots.length + 1;
    this.#slots.push(new Slot(place, this.#hostOf(place)));
  }

  #hostOf(place: number): SlotHost {
    // deno-lint-ignore no-this-alias -- its getters have another one
    const supervisor = this;
    const { spawn, reusePort } = this.#options;
    return {
      spawn,
      reusePort,
      turns: this.#turns,
      get log() {
        return supervisor.#isOneOfMany ? withFields(supervisor.#log, { process: place }) : supervisor.#log;
      },
      get drainMs() {
        return (supervisor.#settings ?? DEFAULT_TIMES).drainMs;
      },
      get hasServed() {
        return supervisor.#servedSince !== undefined;
      },
      get isStopping() {
        return supervisor.#stopping !== undefined || supervisor.#isFinished;
      },
      greet: (slot, child, settings) => this.#greet(slot, child, settings),
      onListening: (port, httpPort) => this.#onListening(port, httpPort),
      onReady: (failed) => this.#onReady(failed),
      onChanged: (name) => this.#blame.forgive(name),
      onUnfit(child, name) {
        supervisor.#blame.strike([name], child.fingerprints);
        this.log.warn(`A worker of function "${name}" cannot be ended: another process takes over`, { pid: child.pid });
      },
      onDeath(child) {
        return supervisor.#onDeath(child, this.log);
      },
      onStopped: () => this.#finishIfAllGone(),
      finish: (code) => this.#finish(code),
    };
  }

  get #isOneOfMany(): boolean {
    return (this.#settings?.processes ?? 1) > 1;
  }

  #greet(slot: Slot, child: Child, settings: Settings): void {
    if (this.#isFinished) return;
    if (!this.#settings) this.#log = this.#options.createLog(settings);
    // How many there are is decided once.
    this.#settings = { ...settings, processes: this.#settings?.processes ?? settings.processes };
    const hasServed = this.#servedSince !== undefined;
    if (!hasServed && !this.#prepare(settings)) {
      child.kill();
      return this.#finish(USAGE_ERROR);
    }
    const httpPort = this.#httpPort;
    child.send({
      type: "start",
      port: hasServed ? this.#port : settings.port,
      ...httpPort !== undefined && { httpPort },
      reusePort: this.#options.reusePort,
      role: slot.role,
      place: slot.place,
      restarts: slot.restarts,
      ...this.#folder !== undefined && { folder: this.#folder },
      verdicts: this.#blame.verdicts(),
      isCareful: this.#isCareful,
    });
  }

  // Whether there can be a server, as far as that can be told before its first process has tried.
  #prepare(settings: Settings): boolean {
    // Where nobody has been asked to share the port, somebody else holds it. Our own children share it.
    if (this.#options.refusesPort(settings)) return false;
    this.#httpPort = this.#options.httpPortOf(settings);
    if (!this.#isOneOfMany) return true;
    this.#folder ??= this.#options.makeFolder();
    return this.#folder !== undefined;
  }

  #onListening(port: number, httpPort: number | undefined): void {
    if (this.#servedSince !== undefined) return;
    this.#servedSince = performance.now();
    this.#port = port;
    this.#httpPort = httpPort;
    this.#options.onListening?.(port);
    if (this.#stopping) return;
    while (this.#slots.length < this.#settings!.processes) this.#addSlot();
  }

  // One process says so by itself.
  #onReady(failed: readonly string[]): void {
    if (!this.#failed || !this.#isOneOfMany) return;
    for (const name of failed) this.#failed.add(name);
    if (!this.#slots.every(({ isReady }) => isReady)) return;
    const names = [...this.#failed];
    this.#failed = undefined;
    if (names.length > 0) return this.#log.warn(`not all functions can be called: ${names.join(", ")} failed`);
    const ms = Math.round(performance.now() - this.#servedSince!);
    this.#log.info("ready", { ms, processes: this.#slots.length });
  }

  #onDeath(child: Child, log: Logger): { readonly suspects?: readonly string[] } {
    if (child.isDescribing && !this.#isCareful) {
      this.#isCareful = true;
      log.warn("It died while it imported functions: each is imported in a process of its own from now on", {
        pid: child.pid,
      });
    }
    const suspects = child.busy.filter((name) => name !== child.unfit);
    this.#blame.strike(suspects, child.fingerprints);
    return suspects.length > 0 ? { suspects } : {};
  }

  #stop(signal: StopSignal): void {
    const { graceMs } = this.#settings ?? DEFAULT_TIMES;
    this.#log.info(`${signal}: finishing the calls in progress; once more to stop now`);
    const deadline = setTimeout(() => this.#killAll(), graceMs + SHUTDOWN_EXTRA_MS);
    this.#stopping = { deadline, code: 0 };
    for (const slot of this.#slots) slot.stop();
    this.#finishIfAllGone();
  }

  #stopNow(signal: StopSignal): void {
    if (this.#stopping!.code !== 0) return;
    clearTimeout(this.#stopping!.deadline);
    const deadline = setTimeout(() => this.#killAll(), NOW_MS);
    this.#stopping = { deadline, code: SIGNALS[signal] };
    for (const slot of this.#slots) slot.stopNow(signal);
  }

  #killAll(): void {
    for (const { children } of this.#slots) for (const child of children) child.kill();
  }

  #finishIfAllGone(): void {
    if (!this.#stopping || this.#slots.some(({ children }) => children.length > 0)) return;
    clearTimeout(this.#stopping.deadline);
    this.#finish(this.#stopping.code);
  }

  #finish(code: number): void {
    this.#isFinished = true;
    this.#finished.resolve(code);
  }
}
