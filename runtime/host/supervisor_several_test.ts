import { assertEquals } from "tensorlet/assert";
import { settled } from "../../test/harness/clock.ts";
import { CRASH, PORT, Rig, SETTINGS, severalOf, STATUS } from "../../test/harness/supervisor_rig.ts";

Deno.test("Supervisor of several has the others join the first one, when it has a port", () => {
  using rig = new Rig();
  const [first] = rig.processes;
  first!.says({ type: "hello", settings: { ...SETTINGS, processes: 3 } });
  assertEquals([rig.processes.length, first!.start.role, first!.start.port], [1, "first", 0]);
  first!.says({ type: "listening", port: PORT });
  assertEquals(rig.processes.length, 3);
  const starts = rig.processes.map((process) => process.joins().start);
  assertEquals(starts.map(({ role, port, place, folder }) => [role, port, place, folder]), [
    ["first", 0, 1, "/a/folder"],
    ["further", PORT, 2, "/a/folder"],
    ["further", PORT, 3, "/a/folder"],
  ]);
});

Deno.test("Supervisor of several says ready once, when all are, and names each function that failed once", () => {
  using rig = new Rig();
  rig.last.joins();
  rig.processes[1]!.joins();
  assertEquals(rig.records, []);
  rig.processes[2]!.joins();
  assertEquals(rig.records.map(({ level, message, fields }) => [level, message, fields.processes]), [
    ["info", "ready", 3],
  ]);

  using other = new Rig();
  other.last.listens(PORT, { ...SETTINGS, processes: 2 });
  other.processes[1]!.listens(PORT, { ...SETTINGS, processes: 2 });
  for (const process of other.processes) process.says({ type: "ready", failed: ["broken"] });
  assertEquals(other.records.map(({ message }) => message), ["not all functions can be called: broken failed"]);
});

Deno.test("Supervisor of several ends as the first process does before it listens, and where nothing can be shared", async () => {
  using rig = new Rig();
  rig.last.says({ type: "hello", settings: { ...SETTINGS, processes: 3 } }).exits({ code: 2, signal: null });
  await settled();
  assertEquals([rig.code, rig.processes.length], [2, 1]);

  using other = new Rig({ makeFolder: () => undefined });
  other.last.says({ type: "hello", settings: { ...SETTINGS, processes: 3 } });
  await settled();
  assertEquals([other.code, other.last.isKilled, other.last.sent], [2, true, []]);
});

Deno.test("Supervisor of several replaces the one that died, on its own; each has its own backoff", async () => {
  using rig = severalOf(3);
  const [first, second, third] = rig.processes;
  second!.exits(CRASH);
  await rig.clock.advance(0);
  assertEquals(rig.processes.length, 4);
  rig.last.exits(CRASH);
  first!.exits(CRASH);
  assertEquals(rig.records.slice(1).map(({ fields }) => [fields.process, fields.restartInMs]), [
    [2, 0],
    [2, 100],
    [1, 0],
  ]);
  await rig.clock.advance(100);
  assertEquals(rig.processes.length, 6);
  for (const process of rig.processes.slice(4)) {
    const { role, port } = process.joins().start;
    assertEquals([role, port], ["replacement", PORT]);
  }
  assertEquals([third!.told, third!.isKilled], [["start"], false]);
});

Deno.test("Supervisor of several starts one again that could not join", async () => {
  using rig = new Rig();
  rig.last.joins(2);
  rig.last.says({ type: "hello", settings: SETTINGS }).exits({ code: 2, signal: null });
  await rig.clock.advance(0);
  assertEquals([rig.code, rig.processes.length, rig.last.joins(2).start.role], [undefined, 3, "further"]);
});

Deno.test("Supervisor of several counts against a function what it did in any of them", async () => {
  using rig = severalOf(3);
  for (const process of rig.processes.slice(0, 2)) {
    process.says({ type: "busy", functions: ["hog"] }).exits(CRASH);
    await rig.clock.advance(0);
  }
  assertEquals(rig.last.joins().start.verdicts.hog?.isolation, "process");
  rig.processes[2]!.says({ type: "describing", active: true }).exits(CRASH);
  await rig.clock.advance(0);
  assertEquals(rig.last.joins().start.isCareful, true);
});

Deno.test("Supervisor of several replaces the unfit one after the other, each when its replacement is ready", async () => {
  using rig = severalOf(3);
  const old = rig.processes.slice();
  for (const process of old.slice(0, 2)) process.says({ type: "unfit", function: "spin" });
  await rig.clock.advance(0);
  assertEquals(rig.processes.length, 4);
  rig.last.joins();
  assertEquals(old.map(({ told }) => told.at(-1)), ["retire", "start", "start"]);
  assertEquals(rig.processes.length, 5);
  rig.last.exits(CRASH); // and does not keep the turn
  await rig.clock.advance(100);
  rig.last.joins();
  assertEquals(old.map(({ told }) => told.at(-1)), ["retire", "retire", "start"]);
});

Deno.test("Supervisor of several has one that dies wait for no turn", async () => {
  using rig = severalOf(2);
  const [first, second] = rig.processes;
  first!.says({ type: "unfit", function: "spin" });
  second!.says({ type: "unfit", function: "spin" });
  await rig.clock.advance(0);
  assertEquals(rig.processes.length, 3); // for the first
  second!.exits(CRASH);
  await rig.clock.advance(100);
  assertEquals(rig.processes.length, 4);
  for (const process of rig.processes.slice(2)) process.joins(2);
  assertEquals([first!.told.at(-1), rig.processes.length], ["retire", 4]);
});

Deno.test("Supervisor of several reloads one after the other, and forgets none that was about to listen", async () => {
  using rig = severalOf(3);
  const [first, second, third] = rig.processes;
  const reloads = () => rig.processes.map(({ told }) => told.filter((type) => type === "reload").length);
  second!.exits(CRASH);
  await rig.clock.advance(0);
  rig.supervisor.reload();
  rig.supervisor.reload();
  assertEquals(reloads(), [1, 0, 0, 0]);
  rig.supervisor.reload(); // the second one is for what changed since the first began
  first!.says({ type: "reloaded" });
  await settled();
  assertEquals(reloads(), [1, 0, 1, 0]);
  third!.says({ type: "reloaded" });
  await settled();
  assertEquals(reloads(), [2, 0, 1, 0]);
  rig.last.joins();
  assertEquals(reloads(), [2, 0, 1, 1]);
  first!.exits(CRASH); // nobody waits for it
  await settled();
  rig.supervisor.reload();
  await settled();
  assertEquals(reloads(), [2, 0, 1, 2]);
  await rig.clock.advance(60_000); // nor for ever for one that does not answer
  assertEquals(reloads().slice(0, 4), [2, 0, 2, 2]);
});

Deno.test("Supervisor of several stops all at once, and ends with the last", async () => {
  using rig = severalOf(3);
  rig.supervisor.stop("SIGTERM");
  assertEquals(rig.processes.map(({ told }) => told.at(-1)), ["shutdown", "shutdown", "shutdown"]);
  for (const process of rig.processes.slice(0, 2)) process.exits();
  await settled();
  assertEquals(rig.code, undefined);
  rig.supervisor.stop("SIGTERM");
  rig.last.exits({ code: 143, signal: null });
  await settled();
  assertEquals([rig.code, rig.processes.length], [143, 3]);
});

Deno.test("Supervisor of several asks all for the status, and takes what comes", async () => {
  using rig = severalOf(3);
  const asked = rig.supervisor.status();
  rig.processes[0]!.says({ type: "status", status: STATUS });
  rig.processes[2]!.says({ type: "status", status: { ...STATUS, process: 3, callsStarted: 5 } });
  rig.processes[1]!.exits(CRASH);
  const status = await asked;
  assertEquals([status?.state, status?.callsStarted, status?.processes.map(({ process }) => process)], [
    "starting",
    5,
    [1, 3],
  ]);
});
