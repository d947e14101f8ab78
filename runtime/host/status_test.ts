import { assertEquals } from "tensorlet/assert";
import { type FunctionStatus, mergeStatuses, type ProcessStatus } from "./status.ts";

const AFFINE: FunctionStatus = {
  name: "affine",
  version: "1",
  revision: 0,
  state: "ready",
  isolation: "worker",
  permissions: "none",
  instances: 1,
  maxInstances: 2,
  busy: 1,
  queued: 0,
  kinds: ["predict"],
};
const FIRST: ProcessStatus = {
  version: "1.2.3",
  pid: 11,
  process: 1,
  address: "127.0.0.1:1",
  state: "ready",
  callsStarted: 5,
  callsFinished: 4,
  callsFailed: 1,
  sessions: 2,
  rssBytes: 100,
  functions: [AFFINE],
};
const SECOND: ProcessStatus = { ...FIRST, pid: 12, process: 2, functions: [{ ...AFFINE, revision: 3, queued: 7 }] };

Deno.test("mergeStatuses() adds up what processes count, and shows each function once", () => {
  assertEquals(mergeStatuses([FIRST, SECOND], 2), {
    version: "1.2.3",
    address: "127.0.0.1:1",
    state: "ready",
    callsStarted: 10,
    callsFinished: 8,
    callsFailed: 2,
    sessions: 4,
    rssBytes: 200,
    functions: [{ ...AFFINE, revision: 3, instances: 2, maxInstances: 4, busy: 2, queued: 7 }],
    processes: [FIRST, SECOND],
  });
});

Deno.test("mergeStatuses() shows where a function is least far, and where processes differ", () => {
  const states = (...all: FunctionStatus["state"][]) => {
    const processes = all.map((state) => ({ ...FIRST, functions: [{ ...AFFINE, state }] }));
    const [merged] = mergeStatuses(processes, all.length)!.functions;
    return [merged!.state, merged!.states];
  };
  assertEquals(states("ready", "ready"), ["ready", undefined]);
  assertEquals(states("ready", "loading", "ready"), ["loading", { ready: 2, loading: 1 }]);
  assertEquals(states("loading", "failed"), ["failed", { loading: 1, failed: 1 }]);
  assertEquals(states("registered", "ready"), ["registered", { registered: 1, ready: 1 }]);
});

Deno.test("mergeStatuses() keeps apart what only one process has: a version, say", () => {
  const other = { ...FIRST, functions: [AFFINE, { ...AFFINE, version: "2" }] };
  const { functions } = mergeStatuses([FIRST, other], 2)!;
  assertEquals(functions.map(({ version, busy }) => [version, busy]), [["1", 2], ["2", 1]]);
});

Deno.test("mergeStatuses() is ready where all are, and nothing where none answers", () => {
  assertEquals(mergeStatuses([FIRST, { ...SECOND, state: "draining" }], 2)?.state, "draining");
  assertEquals(mergeStatuses([FIRST, { ...SECOND, state: "starting" }], 2)?.state, "starting");
  assertEquals(mergeStatuses([FIRST], 2)?.state, "starting");
  assertEquals(mergeStatuses([], 2), undefined);
});
