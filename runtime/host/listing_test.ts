import { assertEquals } from "tensorlet/assert";
import { formatStatus } from "./listing.ts";

Deno.test("formatStatus() shows a running server's functions in columns", () => {
  const common = { version: "1", revision: 0, busy: 0, queued: 0, kinds: ["predict", "batch"] } as const;
  const text = formatStatus({
    version: "1.2.3",
    state: "ready",
    address: "127.0.0.1:50051",
    pid: 42,
    functions: [
      {
        ...common,
        name: "affine",
        state: "ready",
        isolation: "worker",
        instances: 1,
        maxInstances: 2,
        permissions: "none",
      },
      {
        ...common,
        name: "reader",
        revision: 3,
        state: "registered",
        isolation: "process",
        instances: 0,
        maxInstances: 1,
        busy: 12,
        permissions: "read: /data",
      },
    ],
  });
  assertEquals(text.split("\n"), [
    "tensorlet 1.2.3: 2 functions on grpc://127.0.0.1:50051, ready, process 42",
    "",
    "  function     state       isolation  instances  busy  queued  answers        permissions",
    "  affine@1     ready       worker     1/2        0     0       predict batch  none",
    "  reader@1 r3  registered  process    0/1        12    0       predict batch  read: /data",
  ]);
});

Deno.test("formatStatus() leaves out what is not known of a folder", () => {
  const text = formatStatus({
    version: "1.2.3",
    state: "not running",
    folder: "functions",
    port: 50051,
    functions: [{ name: "affine", version: "1", state: "not running", kinds: ["predict"] }],
  });
  assertEquals(text.split("\n"), [
    "tensorlet 1.2.3: 1 function in functions, no server on port 50051",
    "",
    "  function  state        answers",
    "  affine@1  not running  predict",
  ]);
});

Deno.test("formatStatus() shows the processes where there are several, and where they differ", () => {
  const counters = { callsStarted: 12, callsFinished: 9, callsFailed: 1, sessions: 4, rssBytes: 150 * 1024 ** 2 };
  const common = { version: "1", address: "127.0.0.1:1", state: "ready", ...counters, functions: [] } as const;
  const text = formatStatus({
    version: "1.2.3",
    state: "ready",
    address: "127.0.0.1:1",
    pid: 42,
    functions: [{ name: "affine", version: "1", state: "loading", states: { ready: 1, loading: 1 }, busy: 3 }],
    processes: [{ ...common, process: 1, pid: 43 }, { ...common, process: 2, pid: 44 }],
  });
  assertEquals(text.split("\n"), [
    "tensorlet 1.2.3: 1 function on grpc://127.0.0.1:1, ready, process 42",
    "",
    "  function  state               busy",
    "  affine@1  ready 1, loading 1  3",
    "",
    "  process  pid  state  calls  failed  in progress  sessions  memory",
    "  1        43   ready  12     1       3            4         150 MB",
    "  2        44   ready  12     1       3            4         150 MB",
  ]);
});
