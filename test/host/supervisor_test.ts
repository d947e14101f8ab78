// The supervisor as users have it: real processes, real signals.
import { assertEquals, assertMatch, assertNotEquals, assertRejects, assertStringIncludes } from "tensorlet/assert";
import type { Exit } from "../../runtime/host/child.ts";
import type { FromChild, Settings, Start, ToChild } from "../../runtime/host/control.ts";
import { spawnServer } from "../../runtime/host/supervise.ts";

import { answer, collect } from "../harness/grpc_client.ts";
import { connect, DenoProcess, functionFolder, FUNCTIONS, MAIN, portOf, ROOT } from "../harness/server_process.ts";

const SERVE = [...MAIN, FUNCTIONS, "--port", "0"];
const UNFIT_SERVER = ["run", "-A", `${ROOT}test/testdata/unfit_server.ts`, FUNCTIONS];

interface Prediction {
  readonly output_tensor: readonly number[];
}

async function affine(port: number): Promise<readonly number[]> {
  using client = connect(port);
  const { output_tensor } = await answer<Prediction>((done) =>
    client.Predict({ model_id: "affine", input_tensor: [1, 2] }, done)
  );
  return output_tensor;
}

async function list(port: number): Promise<{ readonly pid?: number; readonly state: string }> {
  await using listing = new DenoProcess([...MAIN, "list", FUNCTIONS, "--port", `${port}`, "--json"]);
  return JSON.parse(await listing.stdout.rest());
}

Deno.test("supervisor: a server that was killed is served again, on the same port", async () => {
  await using server = new DenoProcess(SERVE);
  const port = await portOf(server);
  assertEquals(await affine(port), [12, 14]);
  for (let i = 0; i < 2; i++) {
    const [child] = server.children();
    const start = performance.now();
    Deno.kill(child!, "SIGKILL");
    await server.stderr.find(/ERROR The server's process died: another one is started .*signal=SIGKILL/);
    const [, again] = await server.stderr.find(/serving again address=grpc:\/\/127\.0\.0\.1:(\d+)/);
    console.log(`served again after ${Math.round(performance.now() - start)} ms`);
    assertEquals(Number(again), port);
    assertNotEquals(server.children()[0], child);
    assertEquals(await affine(port), [12, 14]);
    await server.stderr.find(/ready/);
  }
  assertEquals((await list(port)).pid, server.pid);
  const [, memory] = /VmRSS:\s+(\d+)/.exec(Deno.readTextFileSync(`/proc/${server.pid}/status`))!;
  console.log(`the supervisor holds ${Math.round(Number(memory) / 1024)} MB`);
  Deno.kill(server.pid, "SIGTERM");
  assertEquals((await server.status).code, 0);
  // The listing is printed once.
  assertEquals((await server.stdout.rest()).includes("grpc://"), false);
});

Deno.test("supervisor: another server's port is taken, though that could be shared", async () => {
  await using server = new DenoProcess(SERVE);
  const port = await portOf(server);
  await using other = new DenoProcess([...MAIN, FUNCTIONS, "--port", `${port}`]);
  assertEquals(await other.stderr.rest(), `error: Cannot listen on 127.0.0.1:${port}: the port is taken\n`);
  assertEquals([(await other.status).code, await other.stdout.rest()], [2, ""]);
});

Deno.test("supervisor: an unfit process is replaced while its calls finish", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const until = String((listener.addr as Deno.NetAddr).port);
  await using server = new DenoProcess(UNFIT_SERVER);
  const [, old, port] = await server.stdout.find(/serving in (\d+) on (\d+), verdicts {}/);
  using client = connect(Number(port));
  const stream = client.StreamPredict({ model_id: "wait", params: { until } });
  const first = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const tokens: string[] = [];
  stream.on("data", ({ token }: { readonly token: string }) => {
    if (token) tokens.push(token);
    first.resolve();
  });
  // Deno's own HTTP/2 client may drop a connection after GOAWAY before it gives out its last status, so a foreign one
  // (test/e2e/cases_isolation.py) looks at that.
  stream.on("error", () => ended.resolve());
  stream.on("end", () => ended.resolve());
  await first.promise;
  const connection = await listener.accept();
  await answer((done) => client.Predict({ model_id: "stuck", input_tensor: [1] }, done));
  const [, fresh, samePort] = await server.stdout.find(/serving in (\d+) on (\d+)/);
  assertEquals(samePort, port);
  assertNotEquals(fresh, old);
  // It listens no more: a new connection goes to the new process.
  await untilOneListens(Number(port));
  using newcomer = connect(Number(port));
  const { output_tensor } = await answer<Prediction>((done) =>
    newcomer.Predict({ model_id: "pid", input_tensor: [1] }, done)
  );
  assertEquals(output_tensor, [Number(fresh)]);
  connection.close();
  await ended.promise;
  assertEquals(tokens, ["first", `last from ${old}`]);
  await server.stderr.find(/The old process has ended .*status=0/);
  assertEquals(server.children(), [Number(fresh)]);
  server.signalGroup("SIGTERM");
  assertEquals((await server.status).code, 0);
});

/** Resolves when one socket listens on a port; it is a matter of an instant. */
async function untilOneListens(port: number): Promise<void> {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")} `;
  for (;;) {
    const table = await Deno.readTextFile("/proc/net/tcp");
    if (table.split("\n").filter((row) => row.includes(suffix) && / 0A /.test(row)).length === 1) return;
  }
}

for (const level of ["inline", "worker", "process"]) {
  Deno.test(`supervisor: Ctrl-C, which the whole group gets, is one signal (${level})`, async () => {
    await using server = new DenoProcess([...SERVE, "--isolation", level]);
    const port = await portOf(server);
    using client = connect(port);
    const stream = client.StreamPredict({ model_id: "counter", max_tokens: 5, params: { delay_ms: "100" } });
    const first = new Promise((resolve) => stream.once("data", resolve));
    const tokens = collect(stream);
    await first;
    server.signalGroup("SIGINT");
    assertEquals((await tokens).length, 5);
    assertEquals((await server.status).code, 0);
    const log = await server.stderr.rest();
    assertEquals(log.match(/once more to stop now/g)?.length, 1);
    assertEquals(log.match(/ stopped/g)?.length, 1);
    assertEquals(log.match(/ERROR/g), null);
  });
}

Deno.test("supervisor: a function that signals its process neither stops the server nor opens its debugger", async () => {
  await using folder = await functionFolder({
    killer: `defineModel({ params: { signal: { type: "string" } }, output: { dtype: "float32" }, predict(_, ctx) {
      Deno.kill(Deno.pid, ctx.params.signal as Deno.Signal);
      return Float32Array.of(1);
    } })`,
  });
  await using server = new DenoProcess([...MAIN, folder.path, "--port", "0"]);
  const port = await portOf(server);
  using client = connect(port);
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGTERM", "SIGUSR1", "SIGTERM"]) {
    await answer((done) => client.Predict({ model_id: "killer", params: { signal } }, done));
  }
  await assertRejects(() => Deno.connect({ hostname: "127.0.0.1", port: 9229 }), Deno.errors.ConnectionRefused);
  Deno.kill(server.pid, "SIGTERM");
  assertEquals((await server.status).code, 0);
});

Deno.test("supervisor: a file that ends the process that imports it fails alone", async () => {
  await using folder = await functionFolder({
    good: `defineModel({ output: { dtype: "float32" }, predict: () => Float32Array.of(7) })`,
    deadly: `(Deno.kill(Deno.pid, "SIGKILL"), defineModel({ predict: () => [] }))`,
  });
  await using server = new DenoProcess([...MAIN, folder.path, "--port", "0"]);
  const [, port] = await server.stdout.find(/grpc:\/\/127\.0\.0\.1:(\d+)/);
  using client = connect(Number(port));
  const { output_tensor } = await answer<Prediction>((done) => client.Predict({ model_id: "good" }, done));
  assertEquals(output_tensor, [7]);
  await assertRejects(() => answer((done) => client.Predict({ model_id: "deadly" }, done)), Error, "cannot be loaded");
  Deno.kill(server.pid, "SIGTERM");
  assertEquals((await server.status).code, 0);
});

Deno.test("supervisor: its server ends when it is killed itself", async () => {
  await using server = new DenoProcess(SERVE);
  const port = await portOf(server);
  Deno.kill(server.pid, "SIGKILL");
  assertStringIncludes(await server.stderr.rest(), "stopped"); // and nobody holds the pipe any more
  // The socket for `list` that it has left does no harm.
  assertEquals((await list(port)).state, "not running");
  await using next = new DenoProcess([...MAIN, FUNCTIONS, "--port", `${port}`]);
  await portOf(next);
  assertEquals((await list(port)).pid, next.pid);
});

Deno.test("supervisor: SIGHUP reloads", async () => {
  await using server = new DenoProcess(UNFIT_SERVER);
  await server.stdout.find(/serving in/);
  Deno.kill(server.pid, "SIGHUP");
  await server.stdout.find(/reloads/);
  Deno.kill(server.pid, "SIGTERM");
  assertEquals((await server.status).code, 0);
});

for (
  const [why, args] of [
    ["it was told so", ["-A", "mod.ts", FUNCTIONS, "--port", "0", "--no-supervisor"]],
    ["it needs all permissions", [
      "--allow-read",
      "--allow-env",
      "--allow-net",
      "--allow-sys",
      "--no-prompt",
      "mod.ts",
      FUNCTIONS,
      "--port",
      "0",
    ]],
  ] as const
) {
  Deno.test(`supervisor: there is none where ${why}`, async () => {
    await using server = new DenoProcess(["run", ...args]);
    const [, port] = await server.stdout.find(/grpc:\/\/127\.0\.0\.1:(\d+)/);
    const [log] = await server.stderr.find(/^[^]*ready/);
    assertEquals(log.includes(`no supervisor: ${why}`), why !== "it was told so");
    assertEquals(server.children(), []);
    assertEquals(await affine(Number(port)), [12, 14]);
    Deno.kill(server.pid, "SIGINT");
    assertEquals((await server.status).code, 0);
  });
}

Deno.test("supervisor: what it starts has its own flags, and no sign of it in the environment", async () => {
  await using server = new DenoProcess([
    "run",
    "-A",
    "--v8-flags=--max-old-space-size=300",
    "mod.ts",
    FUNCTIONS,
    "--port",
    "0",
  ]);
  await portOf(server);
  const command = Deno.readTextFileSync(`/proc/${server.children()[0]}/cmdline`).split("\0");
  assertEquals(command.slice(1, 5), ["run", "-A", "--v8-flags=--max-old-space-size=300", "mod.ts"]);
});

const START: Start = {
  type: "start",
  port: 0,
  reusePort: true,
  role: "replacement",
  place: 1,
  restarts: 0,
  verdicts: {},
  isCareful: false,
};

/** The server's end of the line, with the test as its supervisor. */
class Line {
  readonly #process;
  readonly #exit = Promise.withResolvers<Exit>();
  readonly #messages: FromChild[] = [];
  #wake = () => {};

  constructor(command: readonly string[]) {
    this.#process = spawnServer(command, {
      onMessage: (message) => {
        this.#messages.push(message);
        this.#wake();
      },
      onExit: (exit) => this.#exit.resolve(exit),
    });
  }

  send(message: ToChild): void {
    this.#process.send(message);
  }

  get exit(): Promise<Exit> {
    return this.#exit.promise;
  }

  /** The next message of a type. */
  async next<T extends FromChild["type"]>(type: T): Promise<Extract<FromChild, { readonly type: T }>> {
    for (;;) {
      const index = this.#messages.findIndex((message) => message.type === type);
      if (index >= 0) return this.#messages.splice(index, 1)[0] as Extract<FromChild, { readonly type: T }>;
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
  }

  async start(settings: Partial<Settings> = {}): Promise<number> {
    const hello = await this.next("hello");
    const { port } = { ...hello.settings, ...settings };
    this.send({ ...START, port });
    return (await this.next("listening")).port;
  }
}

Deno.test("supervised: says what the supervisor has to know, and obeys", async () => {
  const line = new Line([...SERVE, "--drain-ms", "123"]);
  const { settings } = await line.next("hello");
  assertEquals([settings.port, settings.drainMs, settings.graceMs], [0, 123, 10_000]);
  const verdicts = { affine: { isolation: "process", why: "a test", fingerprint: "of older files" } } as const;
  line.send({ ...START, verdicts });
  line.send({ type: "ping" });
  await line.next("pong");
  assertEquals(await line.next("changed"), { type: "changed", function: "affine" });
  const { port } = await line.next("listening");
  await line.next("ready");
  const { fingerprints } = await line.next("files");
  assertMatch(fingerprints.affine!, /\d/);
  assertEquals(await affine(port), [12, 14]);
  line.send({ type: "status" });
  const { status } = await line.next("status");
  assertEquals([status.address, status.functions.some(({ name }) => name === "affine")], [`127.0.0.1:${port}`, true]);
  line.send({ type: "retire", drainMs: 1_000 });
  assertEquals(await line.exit, { code: 0, signal: null });
});

Deno.test("supervised: reports functions that are busy or cannot be ended, and stops at once", async () => {
  const line = new Line(UNFIT_SERVER);
  const port = await line.start();
  using client = connect(port);
  const call = client.StreamPredict({ model_id: "hang" });
  const ended = new Promise((resolve) => call.on("error", resolve));
  assertEquals(await line.next("busy"), { type: "busy", functions: ["hang"] });
  await answer((done) => client.Predict({ model_id: "stuck", input_tensor: [1] }, done));
  assertEquals(await line.next("unfit"), { type: "unfit", function: "stuck" });
  line.send({ type: "shutdown" });
  line.send({ type: "shutdown", now: "SIGTERM" });
  assertEquals(await line.exit, { code: 143, signal: null });
  await ended;
});
