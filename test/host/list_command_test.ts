// `list`, beside servers that run, are just replaced, or do not run.
import { assertEquals, assertMatch, assertRejects, assertStringIncludes } from "tensorlet/assert";
import { askServer, openControlSocket } from "../../runtime/host/control_socket.ts";
import { mergeStatuses } from "../../runtime/host/status.ts";
import { DenoProcess, FUNCTIONS, MAIN, type Result } from "../harness/server_process.ts";

async function run(...args: readonly string[]): Promise<Result> {
  await using process = new DenoProcess([...MAIN, ...args]);
  return await process.result();
}

/** A port on which nobody listens. */
function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return (listener.addr as Deno.NetAddr).port;
}

for (const flags of [[], ["--no-supervisor"]]) {
  Deno.test(`list: asks the server that runs on the port (${flags.join() || "supervised"})`, async () => {
    await using server = new DenoProcess([...MAIN, FUNCTIONS, "--port", "0", ...flags]);
    const [, port] = await server.stdout.find(/grpc:\/\/127\.0\.0\.1:(\d+)/);
    await server.stderr.find(/ready/);
    const { code, stdout } = await run("list", "--port", port!);
    assertEquals(code, 0);
    const title = `\\d+ functions on grpc://127\\.0\\.0\\.1:${port}, ready, process ${server.pid}\n`;
    assertMatch(stdout, new RegExp(`^tensorlet \\S+: ${title}`));
    assertMatch(stdout, /\n {2}function +state +isolation +instances +busy +queued +answers +permissions\n/);
    assertMatch(stdout, /\n {2}versioned@2 .* \d+\/\d+ +0 +0 +predict/);
    const json = JSON.parse((await run("list", "--port", port!, "--json")).stdout);
    assertEquals([json.state, json.pid], ["ready", server.pid]);
    Deno.kill(server.pid, "SIGTERM");
    await server.status;
    assertEquals(await askServer(Number(port)), undefined);
  });
}

Deno.test("list: reads the folder where no server runs", async () => {
  const dir = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${dir}/broken.ts`, "export default ((;");
    await Deno.writeTextFile(
      `${dir}/fine@7.ts`,
      'import { defineModel } from "tensorlet"; export default defineModel({ predict: ([x]) => x! });',
    );
    const port = freePort();
    const { code, stdout } = await run("list", dir, "--port", `${port}`);
    assertEquals(code, 0);
    assertStringIncludes(stdout, `: 2 functions in ${dir}, no server on port ${port}\n`);
    assertMatch(stdout, /\n {2}broken@1 +failed/);
    assertMatch(stdout, /\n {2}fine@7 +not running .*predict/);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

for (
  const [args, text] of [
    [["list", "no/such/folder", "--port", "1"], "there is no such folder"],
    [["list", "--jsn"], "Did you mean --json?"],
  ] as const
) {
  Deno.test(`${args.join(" ")} is one line and status 2`, async () => {
    const { code, stdout, stderr } = await run(...args);
    assertEquals([code, stdout, stderr.trimEnd().split("\n").length], [2, "", 1]);
    assertStringIncludes(stderr, text);
  });
}

const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** Resolves when somebody answers. */
async function untilAnswered(port: number): Promise<unknown> {
  for (;;) {
    const answer = await askServer(port);
    if (answer) return answer;
  }
}

Deno.test("openControlSocket() replaces what a killed server left, and nothing of one that runs", async () => {
  const port = freePort();
  const counters = { callsStarted: 0, callsFinished: 0, callsFailed: 0, sessions: 0, rssBytes: 0 };
  const own = { version: "1", pid: 1, process: 1, address: "a:1", state: "ready", ...counters, functions: [] } as const;
  const status = mergeStatuses([own], 1)!;
  const close = openControlSocket(port, () => Promise.resolve(status), silent);
  assertEquals(await untilAnswered(port), { pid: Deno.pid, status });

  const refused = Promise.withResolvers<unknown>();
  const log = { ...silent, debug: (_message: string, fields = {}) => refused.resolve(fields) };
  const closeOther = openControlSocket(port, () => Promise.resolve(undefined), log);
  assertStringIncludes(Deno.inspect(await refused.promise), "belongs to another server");
  closeOther();
  assertEquals(await askServer(port), { pid: Deno.pid, status });
  close();
  assertEquals(await askServer(port), undefined);
});

Deno.test("askServer() fails where the server does not answer", async () => {
  const port = freePort();
  const close = openControlSocket(port, () => Promise.reject(new Error("no")), silent);
  await assertRejects(() => untilAnswered(port), Error, "does not answer");
  close();
});

Deno.test("openControlSocket() uses no folder that others may write to", async () => {
  const dir = await Deno.makeTempDir();
  const before = ["XDG_RUNTIME_DIR", "TMPDIR"].map((name) => [name, Deno.env.get(name)] as const);
  try {
    for (const [name] of before) Deno.env.set(name, dir);
    for (const name of ["tensorlet", `tensorlet-${Deno.uid()}`]) {
      await Deno.mkdir(`${dir}/${name}`);
      await Deno.chmod(`${dir}/${name}`, 0o777);
    }
    const refused = Promise.withResolvers<unknown>();
    const log = { ...silent, debug: (_message: string, fields = {}) => refused.resolve(fields) };
    openControlSocket(1, () => Promise.resolve(undefined), log)();
    assertStringIncludes(Deno.inspect(await refused.promise), "this user's alone");
    assertEquals([...Deno.readDirSync(`${dir}/tensorlet`)], []);
  } finally {
    for (const [name, value] of before) value === undefined ? Deno.env.delete(name) : Deno.env.set(name, value);
    await Deno.remove(dir, { recursive: true });
  }
});
