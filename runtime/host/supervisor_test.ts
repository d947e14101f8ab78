import { assert, assertEquals } from "tensorlet/assert";
import { settled } from "../../test/harness/clock.ts";
import { CRASH, PORT, Rig, SETTINGS, STATUS } from "../../test/harness/supervisor_rig.ts";

Deno.test("Supervisor starts the first process on the port that was asked for, the next on the one that it got", async () => {
  using rig = new Rig();
  rig.last.serves();
  assertEquals(rig.last.start, {
    type: "start",
    port: 0,
    reusePort: true,
    role: "first",
    place: 1,
    restarts: 0,
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
    role: "replacement",
    place: 1,
    restarts: 1,
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

Deno.test("Supervisor decides about HTTP once: a replacement is not asked", async () => {
  for (const found of [8081, undefined]) {
    using rig = new Rig({ httpPortOf: () => found });
    const first = rig.last.says({ type: "hello", settings: SETTINGS });
    first.says({ type: "listening", port: PORT, ...found !== undefined && { httpPort: found } }).exits(CRASH);
    await rig.clock.advance(0);
    const next = rig.last.says({ type: "hello", settings: { ...SETTINGS, httpPort: 8080 } });
    assertEquals([first.start.httpPort, next.start.httpPort], [found, found]);
  }
});

Deno.test("Supervisor retires a process that is unfit when another one is ready", async () => {
  using rig = new Rig();
  const old = rig.last.serves();
  old.says({ type: "unfit", function: "spin" });
  await rig.clock.advance(0);
  const fresh = rig.last.listens();
  assertEquals([fresh === old, old.told], [false, ["start"]]);
  fresh.says({ type: "ready", failed: [] });
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
  rig.last.listens().says({ type: "unfit", function: "spin" }, { type: "ready", failed: [] });
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
  rig.last.says({ type: "status", status: STATUS });
  assertEquals((await asked)?.processes, [STATUS]);
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
