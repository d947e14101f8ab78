// A server's process as its supervisor knows it: what it has said of itself, and what it was asked.
import { within } from "../core/signal.ts";
import type { Fingerprints, FromChild, Settings, ToChild } from "./control.ts";
import type { ProcessStatus } from "./status.ts";

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

/** Starts a process. */
export type Spawn = (events: ProcessEvents) => ServerProcess;

/** What a child does that others have to act on. */
export interface ChildEvents {
  onHello(settings: Settings): void;
  onListening(port: number, httpPort: number | undefined): void;
  /** `failed`: the functions that cannot be called. */
  onReady(failed: readonly string[]): void;
  onUnfit(name: string): void;
  /** The files of a function with a verdict have changed. */
  onChanged(name: string): void;
  onExit(exit: Exit): void;
}

const STATUS_MS = 2_000;
/** What a reload gets before the next process has its turn all the same. */
const RELOAD_MS = 60_000;

/** A process from its start to its end. */
export class Child {
  readonly #process: ServerProcess;
  #stage: "booting" | "starting" | "listening" | "ready" | "ended" = "booting";
  #busy: readonly string[] = [];
  #isDescribing = false;
  #fingerprints: Fingerprints = {};
  /** Resolve with the next answer, or with nothing at its end. */
  #statusWaiters: ((status?: ProcessStatus) => void)[] = [];
  #reloadWaiters: (() => void)[] = [];
  #mustReload = false;
  /** It has a worker that cannot be ended, of that function. */
  unfit: string | undefined;
  /** Of whatever it has to have done by some time. */
  deadline: ReturnType<typeof setTimeout> | undefined;

  constructor(spawn: Spawn, events: (child: Child) => ChildEvents) {
    const { onExit, ...told } = events(this);
    this.#process = spawn({
      onMessage: (message) => this.#onMessage(message, told),
      onExit: (exit) => {
        clearTimeout(this.deadline);
        this.#stage = "ended";
        for (const resolve of [...this.#statusWaiters.splice(0), ...this.#reloadWaiters.splice(0)]) resolve();
        onExit(exit);
      },
    });
  }

  get pid(): number {
    return this.#process.pid;
  }

  get listens(): boolean {
    return this.#stage === "listening" || this.#stage === "ready";
  }

  get isReady(): boolean {
    return this.#stage === "ready";
  }

  /** Functions with calls in it. */
  get busy(): readonly string[] {
    return this.#busy;
  }

  /** It imports files of functions. */
  get isDescribing(): boolean {
    return this.#isDescribing;
  }

  get fingerprints(): Fingerprints {
    return this.#fingerprints;
  }

  send(message: ToChild): void {
    if (message.type === "start") this.#stage = "starting";
    this.#process.send(message);
  }

  kill(): void {
    this.#process.kill();
  }

  /** What it says of itself; undefined where it does not answer. */
  async status(): Promise<ProcessStatus | undefined> {
    if (!this.listens) return undefined;
    const { promise, resolve } = Promise.withResolvers<ProcessStatus | undefined>();
    this.#statusWaiters.push(resolve);
    this.send({ type: "status" });
    return await within(STATUS_MS, promise) ? await promise : undefined;
  }

  /** Has it look at its folder again, now or when it has begun to listen; resolves when it has deployed what has changed. */
  async reload(): Promise<void> {
    if (!this.listens) {
      this.#mustReload = true; // what it has read may be old
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#reloadWaiters.push(resolve);
    this.send({ type: "reload" });
    await within(RELOAD_MS, promise);
  }

  #onMessage(message: FromChild, events: Omit<ChildEvents, "onExit">): void {
    switch (message.type) {
      case "hello":
        return events.onHello(message.settings);
      case "listening":
        this.#stage = "listening";
        if (this.#mustReload) this.send({ type: "reload" });
        return events.onListening(message.port, message.httpPort);
      case "ready":
        this.#stage = "ready";
        return events.onReady(message.failed);
      case "files":
        this.#fingerprints = message.fingerprints;
        return;
      case "busy":
        this.#busy = message.functions;
        return;
      case "unfit":
        return events.onUnfit(message.function);
      case "changed":
        return events.onChanged(message.function);
      case "describing":
        this.#isDescribing = message.active;
        return;
      case "reloaded":
        return void this.#reloadWaiters.shift()?.();
      case "status":
        for (const resolve of this.#statusWaiters.splice(0)) resolve(message.status);
        return;
      case "pong":
    }
  }
}
