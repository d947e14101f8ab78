// Keeps a server's process running: replaces one that died or cannot go on, and ends it when it is told to. Knows neither
// processes nor signals: those are handed in. Light: imports nothing of the server.
import { within } from "../core/signal.ts";
import type { Logger } from "../core/log.ts";
import { Blame } from "./blame.ts";
import {
  type Fingerprints,
  type FromChild,
  type ServerStatus,
  type Settings,
  SIGNALS,
  type StopSignal,
  type ToChild,
} from "./control.ts";

/** How a process ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
  /** Why it could not even be started. */
  readonly error?: string;
}

/** A process that serves. */
export interface ServerProcess {
  readonly pid: number;
  send(message: ToChild): void;
  /** Ends it at once. */
  kill(): void;
}

/** What a process tells whoever started it. */
export interface ProcessEvents {
  onMessage(message: FromChild): void;
  /** Called once, later than the start. */
  onExit(exit: Exit): void;
}

/** What a supervisor works with. */
export interface SupervisorOptions {
  readonly spawn: (events: ProcessEvents) => ServerProcess;
  /** Before `settings` are known, those that are usual. */
  readonly createLog: (settings: Settings | undefined) => Logger;
  /** Whether nobody may listen there, because somebody does; says so. */
  readonly refusesPort: (settings: Settings) => boolean;
  /** Whether two processes can listen at the same time. */
  readonly reusePort: boolean;
  /** The server listens for the first time. */
  readonly onListening?: (port: number) => void;
}

/** Misuse of the command line, as for shells. */
const USAGE_ERROR = 2;
const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 30_000;
/** A process that has served for so long starts with a clean slate. */
const STABLE_MS = 60_000;
/** What a replacement gets to load its warm functions before it takes over all the same. */
const READY_MS = 60_000;
/** What a process gets to end beyond the time that its calls get. */
const RETIRE_EXTRA_MS = 2_000;
const SHUTDOWN_EXTRA_MS = 10_000;
const NOW_MS = 500;
const STATUS_MS = 2_000;

const DEFAULT_TIMES = { graceMs: 10_000, drainMs: 10_000 };

class Child {
  process!: ServerProcess;
  stage: "booting" | "starting" | "listening" | "ready" = "booting";
  busy: readonly string[] = [];
  /** It imports files of functions. */
  isDescribing = false;
  fingerprints: Fingerprints = {};
  /** It has a worker that cannot be ended, of that function. */
  unfit: string | undefined;
  /** Of whatever it has to have done by some time. */
  deadline: ReturnType<typeof setTimeout> | undefined;

  get listens(): boolean {
    return this.stage === "listening" || this.stage === "ready";
  }
}

/** Keeps one process serving. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #blame = new Blame();
  readonly #finished = Promise.withResolvers<number>();
  readonly #retiring = new Set<Child>();
  #log: Logger;
  #settings: Settings | undefined;
  #port = 0;
  #hasServed = false;
  #isFinished = false;
  /** The process that takes calls, or will when it has started. */
  #serving: Child | undefined;
  /** The process that is to replace it. */
  #fresh: Child | undefined;
  #failures = 0;
  /** Importing a function's file has ended a process. */
  #isCareful = false;
  #launching: ReturnType<typeof setTimeout> | undefined;
  #stable: ReturnType<typeof setTimeout> | undefined;
  #stopping: { readonly deadline: ReturnType<typeof setTimeout>; readonly code: number } | undefined;
  #statusWaiters: ((status: ServerStatus) => void)[] = [];

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#log = options.createLog(undefined);
    this.#serving = this.#launch();
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

  /** Has the server look at its folder again. */
  reload(): void {
    for (const child of [this.#serving, this.#fresh]) if (child?.listens) child.process.send({ type: "reload" });
  }

  /** What the server says of itself; undefined where it does not answer. */
  async status(): Promise<ServerStatus | undefined> {
    if (!this.#serving?.listens) return undefined;
    let status: ServerStatus | undefined;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#statusWaiters.push((answer) => {
      status = answer;
      resolve();
    });
    this.#serving.process.send({ type: "status" });
    await within(STATUS_MS, promise);
    return status;
  }

  #children(): readonly Child[] {
    return [this.#serving, this.#fresh, ...this.#retiring].filter((child) => child !== undefined);
  }

  #launch(): Child {
    const child = new Child();
    child.process = this.#options.spawn({
      onMessage: (message) => this.#onMessage(child, message),
      onExit: (exit) => this.#onExit(child, exit),
    });
    return child;
  }

  // At once the first time, then later and later.
  #scheduleLaunch(): number {
    const delayMs = this.#failures === 0 ? 0 : Math.min(FIRST_BACKOFF_MS * 2 ** (this.#failures - 1), MAX_BACKOFF_MS);
    this.#failures++;
    this.#launching = setTimeout(() => {
      this.#launching = undefined;
      if (this.#serving) this.#launchFresh();
      else this.#serving = this.#launch();
    }, delayMs);
    return delayMs;
  }

  #launchFresh(): void {
    const fresh = this.#fresh = this.#launch();
    fresh.deadline = setTimeout(() => {
      if (fresh.listens) return this.#promote(fresh);
      this.#log.error(`The new process does not listen after ${READY_MS} ms`, { pid: fresh.process.pid });
      fresh.process.kill();
    }, READY_MS);
  }

  #onMessage(child: Child, message: FromChild): void {
    switch (message.type) {
      case "hello":
        return this.#onHello(child, message.settings);
      case "listening":
        child.stage = "listening";
        this.#port = message.port;
        if (!this.#hasServed) this.#options.onListening?.(message.port);
        this.#hasServed = true;
        return;
      case "ready":
        child.stage = "ready";
        if (child === this.#fresh) this.#promote(child);
        else if (child === this.#serving) this.#watchStability();
        return;
      case "files":
        child.fingerprints = message.fingerprints;
        return;
      case "busy":
        child.busy = message.functions;
        return;
      case "unfit":
        return this.#onUnfit(child, message.function);
      case "changed":
        return this.#blame.forgive(message.function);
      case "pong":
        return;
      case "describing":
        child.isDescribing = message.active;
        return;
      case "status":
        for (const resolve of this.#statusWaiters.splice(0)) resolve(message.status);
    }
  }

  #onHello(child: Child, settings: Settings): void {
    if (!this.#settings) this.#log = this.#options.createLog(settings);
    this.#settings = settings;
    // Where nobody has been asked to share the port, somebody else holds it. Our own children share it.
    if (!this.#hasServed && this.#options.refusesPort(settings)) {
      child.process.kill();
      return this.#finish(USAGE_ERROR);
    }
    child.stage = "starting";
    child.process.send({
      type: "start",
      port: this.#hasServed ? this.#port : settings.port,
      reusePort: this.#options.reusePort,
      first: !this.#hasServed,
      verdicts: this.#blame.verdicts(),
      isCareful: this.#isCareful,
    });
  }

  #onUnfit(child: Child, name: string): void {
    if (child.unfit !== undefined || this.#retiring.has(child)) return;
    child.unfit = name;
    this.#blame.strike([name], child.fingerprints);
    this.#log.warn(`A worker of function "${name}" cannot be ended: another process takes over`, {
      pid: child.process.pid,
    });
    if (child === this.#serving) this.#replaceServing();
  }

  #replaceServing(): void {
    clearTimeout(this.#stable);
    if (this.#stopping || this.#fresh || this.#launching !== undefined) return;
    this.#scheduleLaunch();
    if (!this.#options.reusePort) this.#retireServing(); // it has to free the port first
  }

  #promote(fresh: Child): void {
    clearTimeout(fresh.deadline);
    this.#fresh = undefined;
    if (this.#serving) this.#retireServing();
    this.#serving = fresh;
    this.#watchStability();
    if (fresh.unfit !== undefined) this.#replaceServing();
  }

  #retireServing(): void {
    const old = this.#serving!;
    const drainMs = (this.#settings ?? DEFAULT_TIMES).drainMs;
    this.#serving = undefined;
    clearTimeout(this.#stable);
    this.#retiring.add(old);
    old.process.send({ type: "retire", drainMs });
    old.deadline = setTimeout(() => {
      this.#log.warn("The old process does not end: it is killed", { pid: old.process.pid });
      old.process.kill();
    }, drainMs + RETIRE_EXTRA_MS);
  }

  #watchStability(): void {
    clearTimeout(this.#stable);
    this.#stable = setTimeout(() => this.#failures = 0, STABLE_MS);
  }

  #onExit(child: Child, exit: Exit): void {
    clearTimeout(child.deadline);
    if (this.#isFinished) return;
    const isRetired = this.#retiring.delete(child);
    const wasServing = child === this.#serving;
    if (wasServing) this.#serving = undefined;
    if (child === this.#fresh) this.#fresh = undefined;
    const how = { pid: child.process.pid, ...describeExit(exit) };
    if (this.#stopping) return this.#finishIfAllGone();
    if (isRetired) return this.#log.info("The old process has ended", how);
    // What it printed says why; another one would fail in the same way.
    if (!this.#hasServed && exit.code !== null) return this.#finish(exit.code);
    clearTimeout(wasServing ? this.#stable : undefined);
    if (child.isDescribing && !this.#isCareful) {
      this.#isCareful = true;
      this.#log.warn("It died while it imported functions: each is imported in a process of its own from now on", {
        pid: child.process.pid,
      });
    }
    const suspects = child.busy.filter((name) => name !== child.unfit);
    this.#blame.strike(suspects, child.fingerprints);
    const fields = { ...how, ...suspects.length > 0 && { suspects } };
    const what = wasServing ? "The server's process died" : "The process that was to take over died";
    if (wasServing && this.#fresh) {
      this.#log.error(`${what}: the new one takes over`, fields);
      this.#promote(this.#fresh);
    } else if (this.#launching !== undefined) {
      this.#log.error(`${what}: another one is about to start`, fields);
    } else {
      const restartInMs = this.#scheduleLaunch();
      this.#log.error(`${what}: another one is started`, { ...fields, restartInMs });
    }
  }

  #stop(signal: StopSignal): void {
    const { graceMs } = this.#settings ?? DEFAULT_TIMES;
    this.#log.info(`${signal}: finishing the calls in progress; once more to stop now`);
    const deadline = setTimeout(() => this.#killAll(), graceMs + SHUTDOWN_EXTRA_MS);
    this.#stopping = { deadline, code: 0 };
    clearTimeout(this.#launching);
    clearTimeout(this.#stable);
    for (const child of this.#children()) {
      // One that does not serve yet has nothing to finish, and one that retires does so already.
      if (!child.listens) child.process.kill();
      else if (!this.#retiring.has(child)) child.process.send({ type: "shutdown" });
    }
    this.#finishIfAllGone();
  }

  #stopNow(signal: StopSignal): void {
    if (this.#stopping!.code !== 0) return;
    clearTimeout(this.#stopping!.deadline);
    const deadline = setTimeout(() => this.#killAll(), NOW_MS);
    this.#stopping = { deadline, code: SIGNALS[signal] };
    for (const child of this.#children()) child.process.send({ type: "shutdown", now: signal });
  }

  #killAll(): void {
    for (const child of this.#children()) child.process.kill();
  }

  #finishIfAllGone(): void {
    if (this.#children().length > 0) return;
    clearTimeout(this.#stopping!.deadline);
    this.#finish(this.#stopping!.code);
  }

  #finish(code: number): void {
    this.#isFinished = true;
    this.#finished.resolve(code);
  }
}

function describeExit({ code, signal, error }: Exit): Readonly<Record<string, unknown>> {
  if (error !== undefined) return { error };
  return signal !== null ? { signal } : { status: code };
}
