// Several processes of one server as users have them: real processes, real signals.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "tensorlet/assert";
import type { ServerStatus } from "../../runtime/host/status.ts";
import { collect, metadata } from "../harness/grpc_client.ts";
import { type Client, connectToEach, PID, pidBehind } from "../harness/processes.ts";
import { connect, DenoProcess, functionFolder, FUNCTIONS, MAIN, portOf } from "../harness/server_process.ts";

function start(folder: string, ...args: readonly string[]): DenoProcess {
  return new DenoProcess([...MAIN, folder, "--port", "0", "--processes", "2", ...args]);
}

interface Listed extends ServerStatus {
  readonly pid: number;
}

async function list(port: number, ...args: readonly string[]): Promise<string> {
  await using listing = new DenoProcess([...MAIN, "list", "--port", `${port}`, ...args]);
  return await listing.stdout.rest();
}

const listed = async (port: number): Promise<Listed> => JSON.parse(await list(port, "--json"));

Deno.test("processes: two share a port that they took, and nobody else; one view of them", async () => {
  await using folder = await functionFolder({ pid: PID });
  await using server = start(folder.path);
  const port = await portOf(server);
  const pids = server.children();
  assertEquals(pids.length, 2);
  using connected = await connectToEach(port, pids);
  for (const client of connected.clients) await pidBehind(client);
  await using other = new DenoProcess([...MAIN, FUNCTIONS, "--port", `${port}`, "--processes", "2"]);
  const { code, stderr } = await other.result();
  assertEquals([code, stderr], [2, `error: Cannot listen on 127.0.0.1:${port}: the port is taken\n`]);

  const status = await listed(port);
  assertEquals([status.pid, status.state], [server.pid, "ready"]);
  assertEquals(status.processes.map(({ pid, process }) => [process, pid]), pids.map((pid, i) => [i + 1, pid]));
  const [shown, ...others] = status.functions;
  assertEquals([others, shown!.name, shown!.state, shown!.instances, shown!.maxInstances], [[], "pid", "ready", 2, 2]);
  assert(status.processes.every(({ callsStarted, rssBytes }) => callsStarted >= 2 && rssBytes > 1e6));
  for (const key of ["callsStarted", "callsFinished", "callsFailed", "sessions", "rssBytes"] as const) {
    assertEquals(status[key], status.processes.reduce((sum, each) => sum + each[key], 0));
  }
  assertMatch(await list(port), /\n {2}process +pid +state .*\n {2}1 .*ready.*\n {2}2 .*ready/);

  Deno.kill(server.pid, "SIGTERM");
  assertEquals((await server.status).code, 0);
  const banners = (await server.stdout.rest()).match(/functions? on grpc/g) ?? [];
  const log = await server.stderr.rest();
  assertEquals([banners.length, log.match(/ ready/g), log.match(/once more to stop now/g)?.length], [0, null, 1]);
});

Deno.test("processes: one that is killed is replaced; the other one goes on", async () => {
  await using folder = await functionFolder({ pid: PID });
  await using server = start(folder.path);
  const port = await portOf(server);
  const [first, second] = server.children() as [number, number];
  using connected = await connectToEach(port, [first, second]);
  const survivor = connected.clients[1]!;
  let isOver = false;
  const calling = (async () => {
    let calls = 0;
    for (; !isOver; calls++) assertEquals(await pidBehind(survivor), second);
    return calls;
  })();
  Deno.kill(first, "SIGKILL");
  await server.stderr.find(/ERROR The server's process died: another one is started process=1 .*signal=SIGKILL/);
  await server.stderr.find(/serving again process=1 /);
  await server.stderr.find(/ready process=1 /);
  isOver = true;
  assert(await calling > 0);
  const now = server.children();
  assertEquals([now.length, now.includes(second), now.includes(first)], [2, true, false]);
  using again = await connectToEach(port, now);
  assertEquals(again.clients.length, 2);
  server.signalGroup("SIGINT");
  assertEquals((await server.status).code, 0);
});

Deno.test("processes: what cannot be served is said once, and is the end", async () => {
  await using missing = start("/no/such/folder");
  const { code, stderr } = await missing.result();
  assertEquals([code, stderr.match(/error:/g)?.length], [2, 1]);
  assertStringIncludes(stderr, "there is no such folder");
});

Deno.test("processes: several need a supervisor; auto is one without", async () => {
  await using several = start(FUNCTIONS, "--no-supervisor");
  const { code, stderr } = await several.result();
  assertEquals([code, stderr.trimEnd().split("\n").length], [2, 1]);
  assertStringIncludes(stderr, "Cannot serve with 2 processes");
  assertStringIncludes(stderr, "there is none: it was told so");
  await using alone = start(FUNCTIONS, "--no-supervisor", "--processes", "auto");
  await portOf(alone);
  Deno.kill(alone.pid, "SIGTERM");
  assertEquals((await alone.status).code, 0);
});

async function turn(client: Client, session_id: string, content: string): Promise<string> {
  const call = client.ChatStream(metadata({ "model-id": "parrot" }));
  call.write({ session_id, content });
  call.end();
  return (await collect<{ readonly content: string }>(call)).map((piece) => piece.content).join("");
}

const PARROT = `defineModel({
  session: { init: () => ({ count: 0 }) },
  async *chat(message, ctx) {
    yield \`\${++ctx.session.state.count}: \${message.content}\`;
  },
})`;

Deno.test("processes: a session goes on in another process, also when its own was killed", async () => {
  await using folder = await functionFolder({ pid: PID, parrot: PARROT });
  await using server = start(folder.path);
  const port = await portOf(server);
  const [first, second] = server.children() as [number, number];
  using connected = await connectToEach(port, [first, second]);
  const [here, there] = connected.clients;
  const said: string[] = [];
  for (const [i, client] of [here, there, here, there].entries()) said.push(await turn(client, "s", `${i}`));
  assertEquals(said, ["1: 0", "2: 1", "3: 2", "4: 3"]);
  assertEquals((await listed(port)).processes.every(({ sessions }) => sessions <= 1), true);
  Deno.kill(first, "SIGKILL");
  assertEquals(await turn(there, "s", "on"), "5: on");
  await server.stderr.find(/ready process=1/);
  Deno.kill(server.pid, "SIGTERM");
  assertEquals((await server.status).code, 0);
});

for (const how of ["SIGTERM", "SIGKILL"] as const) {
  Deno.test(`processes: what they share is gone with them (${how} to the supervisor)`, async () => {
    await using folder = await functionFolder({ pid: PID, parrot: PARROT });
    const tmp = await Deno.makeTempDir();
    await using server = new DenoProcess([...MAIN, folder.path, "--port", "0", "--processes", "2"], { TMPDIR: tmp });
    const port = await portOf(server);
    using client = connect(port);
    assertEquals(await turn(client, "s", "a"), "1: a");
    const shared = () => [...Deno.readDirSync(tmp)].filter(({ name }) => name.startsWith("tensorlet-shared-"));
    const [{ name }] = shared() as [Deno.DirEntry];
    assertEquals(Deno.statSync(`${tmp}/${name}`).mode! & 0o077, 0);
    Deno.kill(server.pid, how);
    await server.stderr.rest(); // until all of them have ended
    assertEquals(shared(), []);
    await Deno.remove(tmp, { recursive: true });
  });
}

Deno.test("processes: sessions in memory that somebody asked for are warned of", async () => {
  await using folder = await functionFolder({ pid: PID });
  await using server = start(folder.path, "--sessions", "memory");
  await server.stderr.find(/WARN {2}sessions are kept in the memory of each of the 2 processes/);
});

const SLOW = `defineModel({
  async *stream(_inputs, ctx) {
    for (let i = 0; i < 30; i++) {
      yield \`\${i} of \${Deno.pid}\`;
      await new Promise((resolve) => setTimeout(resolve, 20));
      ctx.signal.throwIfAborted();
    }
  },
})`;

Deno.test("processes: a broken stream is resumed through another process, and runs once", async () => {
  await using folder = await functionFolder({ pid: PID, slow: SLOW });
  await using server = start(folder.path);
  const port = await portOf(server);
  const [first, second] = server.children() as [number, number];
  using connected = await connectToEach(port, [first, second]);
  const [here, there] = connected.clients;
  const id = metadata({ "request-id": "broken" });
  const stream = here.StreamPredict({ model_id: "slow" }, id);
  const tokens: string[] = [];
  stream.on("error", () => {});
  for await (const { token } of stream) {
    tokens.push(token);
    if (tokens.length === 3) break;
  }
  stream.cancel();
  const rest = there.StreamPredict({ model_id: "slow", params: { resume_from: `${tokens.length}` } }, id);
  for (const { token } of await collect<{ readonly token: string }>(rest)) if (token) tokens.push(token);
  assertEquals(tokens, Array.from({ length: 30 }, (_, i) => `${i} of ${first}`));
  const unknown = there.StreamPredict(
    { model_id: "slow", params: { resume_from: "0" } },
    metadata({ "request-id": "x" }),
  );
  const error = await collect(unknown).then(() => undefined, (error) => error);
  assertStringIncludes(error.message, "NOT_FOUND");
});

for (const [how, args] of [["SIGHUP", []], ["--watch", ["--watch"]]] as const) {
  Deno.test(`processes: all have what has changed (${how})`, async () => {
    const saying = (word: string) => `defineModel({ async *stream() { yield ${JSON.stringify(word)}; } })`;
    await using folder = await functionFolder({ pid: PID, bot: saying("old") });
    await using server = start(folder.path, ...args);
    const port = await portOf(server);
    const pids = server.children();
    using connected = await connectToEach(port, pids);
    const words = async () => {
      const streams = connected.clients.map((client) =>
        collect<{ token: string }>(client.StreamPredict({ model_id: "bot" }))
      );
      return (await Promise.all(streams)).map(([chunk]) => chunk!.token);
    };
    assertEquals(await words(), ["old", "old"]);
    const source = await Deno.readTextFile(`${folder.path}/bot.ts`);
    await Deno.writeTextFile(`${folder.path}/bot.ts`, source.replace("old", "a new one"));
    if (how === "SIGHUP") Deno.kill(server.pid, "SIGHUP");
    while ((await words()).some((word) => word !== "a new one"));
    assertEquals(server.children(), pids);
    Deno.kill(server.pid, "SIGTERM");
    assertEquals((await server.status).code, 0);
    assertEquals((await server.stderr.rest()).match(/INFO {2}reloaded/g)?.length, 1);
  });
}
