// A supervisor without processes: a test says what they would.
import { assertExists } from "tensorlet/assert";
import { createLogger, type LogRecord } from "../../runtime/core/log.ts";
import type { Exit, ProcessEvents } from "../../runtime/host/child.ts";
import type { FromChild, Settings, Start, ToChild } from "../../runtime/host/control.ts";
import type { ProcessStatus } from "../../runtime/host/status.ts";
import { Supervisor, type SupervisorOptions } from "../../runtime/host/supervisor.ts";
import { FakeClock } from "./clock.ts";

/** Of a server with one process. */
export const SETTINGS: Settings = {
  hostname: "127.0.0.1",
  port: 0,
  httpPort: undefined,
  hasChosenHttpPort: false,
  processes: 1,
  graceMs: 10_000,
  drainMs: 5_000,
  logFormat: "text",
  logLevel: "info",
};
/** A process of a server that has done nothing. */
export const STATUS: ProcessStatus = {
  version: "1",
  pid: 1,
  process: 1,
  address: "a:1",
  state: "ready",
  callsStarted: 0,
  callsFinished: 0,
  callsFailed: 0,
  sessions: 0,
  rssBytes: 0,
  functions: [],
};
/** The end of a process that nobody asked for. */
export const CRASH: Exit = { code: null, signal: "SIGSEGV" };
/** The port that a server got. */
export const PORT = 4321;

/** A server's process that does what a test says. */
export class FakeProcess {
  readonly sent: ToChild[] = [];
  isKilled = false;
  readonly #events: ProcessEvents;
  readonly pid: number;

  constructor(events: ProcessEvents, pid: number) {
    this.#events = events;
    this.pid = pid;
  }

  send(message: ToChild): void {
    this.sent.push(message);
  }

  kill(): void {
    this.isKilled = true;
  }

  says(...messages: readonly FromChild[]): this {
    for (const message of messages) this.#events.onMessage(message);
    return this;
  }

  exits(exit: Exit = { code: 0, signal: null }): void {
    this.#events.onExit(exit);
  }

  listens(port = PORT, settings = SETTINGS): this {
    return this.says({ type: "hello", settings }, { type: "listening", port });
  }

  serves(port = PORT): this {
    return this.listens(port).says({ type: "ready", failed: [] });
  }

  /** One of several that serve. */
  joins(processes = 3): this {
    return this.listens(PORT, { ...SETTINGS, processes }).says({ type: "ready", failed: [] });
  }

  get start(): Start {
    const start = this.sent.find(({ type }) => type === "start");
    assertExists(start);
    return start as Start;
  }

  get told(): readonly string[] {
    return this.sent.map(({ type }) => type);
  }
}

/** A supervisor with processes and a clock that do what a test says. */
export class Rig implements Disposable {
  readonly clock = new FakeClock();
  readonly processes: FakeProcess[] = [];
  readonly records: LogRecord[] = [];
  readonly supervisor: Supervisor;
  code: number | undefined;

  constructor(options: Partial<SupervisorOptions> = {}) {
    this.supervisor = new Supervisor({
      spawn: (events) => {
        const process = new FakeProcess(events, this.processes.length + 1);
        this.processes.push(process);
        return process;
      },
      createLog: () => createLogger((record) => this.records.push(record)),
      refusesPort: () => false,
      httpPortOf: ({ httpPort }) => httpPort,
      makeFolder: () => "/a/folder",
      reusePort: true,
      ...options,
    });
    this.supervisor.finished.then((code) => this.code = code);
  }

  get last(): FakeProcess {
    return this.processes.at(-1)!;
  }

  [Symbol.dispose](): void {
    this.clock[Symbol.dispose]();
  }
}

/** A server with processes that all are ready. */
export function severalOf(processes: number, options: Partial<SupervisorOptions> = {}): Rig {
  const rig = new Rig(options);
  rig.last.joins(processes);
  for (const process of rig.processes.slice(1)) process.joins(processes);
  return rig;
}
