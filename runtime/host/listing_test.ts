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
