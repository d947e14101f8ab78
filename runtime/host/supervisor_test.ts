import { assert, assertEquals, assertExists } from "tensorlet/assert";
import { FakeClock, settled } from "../../test/harness/clock.ts";
import { createLogger, type LogRecord } from "../core/log.ts";
import type { FromChild, ServerStatus, Settings, Start, ToChild } from "./control.ts";
import { type Exit, type ProcessEvents, Supervisor, type SupervisorOptions } from "./supervisor.ts";

const SETTINGS: Settings = {
  hostname: "127.0.0.1",
  port: 0,
  graceMs: 10_000,
  drainMs: 5_000,
  logFormat: "text",
  logLevel: "info",
};
const CRASH: Exit = { code: null, signal: "SIGSEGV" };
const PORT = 4321;

/** A server's process that does what a test says. */
class FakeProcess {
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

  listens(port = PORT): this {
    return this.says({ type: "hello", settings: SETTINGS }, { type: "listening", port });
  }

  serves(port = PORT): this {
    return this.listens(port).says({ type: "ready" });
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

class Rig implements Disposable {
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

Deno.test("Supervisor starts the first process on the port that was asked for, the next on the one that it got", async () => {
  using rig = new Rig();
  rig.last.serves();
  assertEquals(rig.last.start, {
    type: "start",
    port: 0,
    reusePort: true,
    first: true,
    verdicts: {},
    isCareful: false,
  });
  rig.last.exits(CRASH);
  await rig.clock.advance(0);
  rig.last.serves();
  assertEquals(rig.last.start, {
    type: "start",
    port: PORT,
    reusePort: true,
    first: false,
    verdicts: {},
    isCareful: false,
  });
  assertEquals(rig.records.map(({ level, fields }) => [level, fields.signal, fields.restartInMs]), [
    ["error", "SIGSEGV", 0],
  ]);
});

Deno.test("Supervisor backs off from a process that keeps dying, until one has served for a minute", async () => {
  using rig = new Rig();
  rig.last.serves();
  const delays: unknown[] = [];
  const crash = async () => {
    rig.last.exits({ code: 1, signal: null });
    const delay = rig.records.at(-1)!.fields.restartInMs as number;
    delays.push(delay);
    const count = rig.processes.length;
    if (delay > 0) await rig.clock.advance(delay - 1);
    assertEquals(rig.processes.length, count);
    await rig.clock.advance(1);
    assertEquals(rig.processes.length, count + 1);
  };
  for (let i = 0; i < 12; i++) await crash();
  assertEquals(delays, [0, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000]);
  rig.last.serves();
  await rig.clock.advance(59_000);
  await crash();
  rig.last.serves();
  await rig.clock.advance(60_000);
  await crash();
  assertEquals(delays.slice(-2), [30000, 0]);
});

Deno.test("Supervisor ends as the first process does before it serves", async () => {
  for (const code of [0, 1, 2]) {
    using rig = new Rig();
    rig.last.says({ type: "hello", settings: SETTINGS }).exits({ code, signal: null });
    await settled();
    assertEquals([rig.code, rig.processes.length], [code, 1]);
  }
});

Deno.test("Supervisor tries again what cannot be configured any more", async () => {
  using rig = new Rig();
  rig.last.serves().exits(CRASH);
  await rig.clock.advance(0);
  rig.last.exits({ code: 2, signal: null });
  await rig.clock.advance(100);
  assertEquals([rig.code, rig.processes.length], [undefined, 3]);
});

Deno.test("Supervisor ends with 2 where the port is taken", async () => {
  using rig = new Rig({ refusesPort: () => true });
  rig.last.says({ type: "hello", settings: SETTINGS });
  await settled();
  rig.last.exits({ code: null, signal: "SIGKILL" });
  assertEquals([rig.code, rig.last.isKilled, rig.last.sent, rig.records], [2, true, [], []]);
});

Deno.test("Supervisor retires a process that is unfit when another one is ready", async () => {
  using rig = new Rig();
  const old = rig.last.serves();
  old.says({ type: "unfit", function: "spin" });
  await rig.clock.advance(0);
  const fresh = rig.last.listens();
  assertEquals([fresh === old, old.told], [false, ["start"]]);
  fresh.says({ type: "ready" });
  assertEquals(old.sent.at(-1), { type: "retire", drainMs: 5_000 });
  await rig.clock.advance(6_999);
  assertEquals(old.isKilled, false);
  await rig.clock.advance(1);
  assertEquals(old.isKilled, true);
  old.exits({ code: null, signal: "SIGKILL" });
  await rig.clock.advance(60_000);
  assertEquals([rig.processes.length, fresh.isKilled, fresh.told], [2, false, ["start"]]);
});

Deno.test("Supervisor leaves the port to nobody else where it cannot be shared", async () => {
  using rig = new Rig({ reusePort: false });
  const old = rig.last.serves().says({ type: "unfit", function: "spin" });
  assertEquals(old.told, ["start", "retire"]);
  old.exits();
  await rig.clock.advance(0);
  assertEquals([rig.last.serves().start.port, rig.last.start.reusePort], [PORT, false]);
});

Deno.test("Supervisor keeps an unfit process serving until a replacement succeeds", async () => {
  using rig = new Rig();
  const old = rig.last.serves().says({ type: "unfit", function: "spin" });
  await rig.clock.advance(0);
  rig.last.exits(CRASH);
  assertEquals([rig.processes.length, old.told], [2, ["start"]]);
  await rig.clock.advance(100);
  assertEquals(rig.processes.length, 3);
  rig.last.serves();
  assertEquals(old.told, ["start", "retire"]);
});

Deno.test("Supervisor does not wait for ever for warm functions of a replacement, nor for one that hangs", async () => {
  using rig = new Rig();
  const old = rig.last.serves().says({ type: "unfit", function: "spin" });
  await rig.clock.advance(0);
  const hanging = rig.last;
  await rig.clock.advance(60_000);
  assertEquals([hanging.isKilled, old.told], [true, ["start"]]);
  hanging.exits({ code: null, signal: "SIGKILL" });
  await rig.clock.advance(100);
  rig.last.listens();
  await rig.clock.advance(59_999);
  assertEquals(old.told, ["start"]);
  await rig.clock.advance(1);
  assertEquals(old.told, ["start", "retire"]);
});

Deno.test("Supervisor has the replacement take over at once when the unfit process dies", async () => {
  using rig = new Rig();
  rig.last.serves().says({ type: "unfit", function: "spin" });
  await rig.clock.advance(0);
  rig.processes[0]!.exits(CRASH);
  await rig.clock.advance(60_000);
  assertEquals([rig.processes.length, rig.last.isKilled], [2, false]);
});

Deno.test("Supervisor replaces a replacement that has become unfit too", async () => {
  using rig = new Rig();
  rig.last.serves().says({ type: "unfit", function: "spin" });
  await rig.clock.advance(0);
  rig.last.listens().says({ type: "unfit", function: "spin" }, { type: "ready" });
  await rig.clock.advance(100);
  assertEquals(rig.processes.length, 3);
  assertEquals(rig.last.serves().start.verdicts.spin?.isolation, "process");
  assertEquals(rig.processes[1]!.told, ["start", "retire"]);
});

Deno.test("Supervisor blames the functions that were busy, by the files that they were of", async () => {
  using rig = new Rig();
  for (let i = 0; i < 2; i++) {
    rig.last.serves().says(
      { type: "files", fingerprints: { hog: "one", other: "one" } },
      { type: "busy", functions: ["other"] },
      { type: "busy", functions: ["hog"] },
    ).exits(CRASH);
    assertEquals(rig.records.at(-1)!.fields.suspects, ["hog"]);
    await rig.clock.advance(100);
  }
  rig.last.serves();
  const { why: _, ...verdict } = rig.last.start.verdicts.hog!;
  assertEquals([Object.keys(rig.last.start.verdicts), verdict], [["hog"], {
    isolation: "process",
    fingerprint: "one",
  }]);
  rig.last.says({ type: "changed", function: "hog" }).exits(CRASH);
  await rig.clock.advance(60_000);
  assertEquals(rig.last.serves().start.verdicts, {});
});

Deno.test("Supervisor stops with 0 when its processes have", async () => {
  using rig = new Rig();
  rig.last.serves();
  rig.supervisor.stop("SIGTERM");
  assertEquals(rig.last.sent.at(-1), { type: "shutdown" });
  await settled();
  assertEquals(rig.code, undefined);
  rig.last.exits();
  await settled();
  assertEquals([rig.code, rig.processes.length], [0, 1]);
});

Deno.test("Supervisor stops at once at the second signal, with its status", async () => {
  using rig = new Rig();
  rig.last.serves();
  rig.supervisor.stop("SIGTERM");
  rig.supervisor.stop("SIGINT");
  assertEquals(rig.last.sent.at(-1), { type: "shutdown", now: "SIGINT" });
  await rig.clock.advance(500);
  assert(rig.last.isKilled);
  rig.last.exits({ code: null, signal: "SIGKILL" });
  await settled();
  assertEquals(rig.code, 130);
});

Deno.test("Supervisor has files imported with care once a process has died of them", async () => {
  using rig = new Rig();
  rig.last.serves();
  rig.last.says({ type: "describing", active: true }, { type: "describing", active: false });
  rig.last.exits({ code: null, signal: "SIGKILL" });
  await rig.clock.advance(0);
  rig.last.serves();
  assertEquals(rig.last.start.isCareful, false);
  rig.last.says({ type: "describing", active: true });
  rig.last.exits({ code: null, signal: "SIGKILL" });
  await rig.clock.advance(1000);
  rig.last.serves();
  assertEquals(rig.last.start.isCareful, true);
});

Deno.test("Supervisor kills what does not end in its grace time and ten seconds", async () => {
  using rig = new Rig();
  rig.last.serves();
  rig.supervisor.stop("SIGTERM");
  await rig.clock.advance(19_999);
  assertEquals(rig.last.isKilled, false);
  await rig.clock.advance(1);
  assertEquals(rig.last.isKilled, true);
});

Deno.test("Supervisor stops while nothing serves, or something starts to", async () => {
  using rig = new Rig();
  rig.last.serves().exits(CRASH);
  await rig.clock.advance(0);
  rig.supervisor.stop("SIGTERM");
  assertEquals(rig.last.isKilled, true);
  rig.last.exits({ code: null, signal: "SIGKILL" });
  await settled();
  assertEquals(rig.code, 0);

  using other = new Rig();
  other.last.serves().exits(CRASH);
  await other.clock.advance(0);
  other.last.exits(CRASH);
  other.supervisor.stop("SIGTERM");
  await other.clock.advance(60_000);
  assertEquals([other.code, other.processes.length], [0, 2]);
});

Deno.test("Supervisor passes a reload on, and asks for the status", async () => {
  using rig = new Rig();
  assertEquals(await rig.supervisor.status(), undefined);
  rig.last.serves();
  rig.supervisor.reload();
  assertEquals(rig.last.sent.at(-1), { type: "reload" });
  const asked = rig.supervisor.status();
  const status: ServerStatus = { version: "1", address: "a:1", state: "ready", functions: [] };
  rig.last.says({ type: "status", status });
  assertEquals(await asked, status);
  const unanswered = rig.supervisor.status();
  await rig.clock.advance(2_000);
  assertEquals(await unanswered, undefined);
});

Deno.test("Supervisor tries again where no process can be started", async () => {
  using rig = new Rig();
  rig.last.exits({ code: null, signal: null, error: "out of memory" });
  assertEquals(rig.records.at(-1)!.fields.error, "out of memory");
  await rig.clock.advance(0);
  assertEquals(rig.processes.length, 2);
});
