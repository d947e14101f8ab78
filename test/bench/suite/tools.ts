// The tools that some servers and loads need: found once, or missing with the reason.
import { ROOT } from "../../harness/server_process.ts";
import { start } from "./children.ts";
import { Unavailable } from "./server_process.ts";

/** The project's protos. */
export const PROTOS = `${ROOT}protos`;

/** Runs a program to its end and gives what it printed; its error says the end of what it complained of. */
export async function run(
  program: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<string> {
  const { success, stdout, stderr } = await start(program, { ...options, args: [...args] }).output();
  const decoder = new TextDecoder();
  if (!success) throw new Error(`${program}: ${decoder.decode(stderr).trim().split("\n").at(-1)}`);
  return decoder.decode(stdout).trim();
}

/** Fails with what is needed where the work fails for whatever reason. */
export async function need<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new Unavailable(`needs ${what} (${error instanceof Error ? error.message : error})`);
  }
}

/** What is built or downloaded once and kept for later runs. */
export function cacheFolder(name: string): string {
  const base = Deno.env.get("XDG_CACHE_HOME") ?? `${Deno.env.get("HOME") ?? "/tmp"}/.cache`;
  return `${base}/tensorlet-bench/${name}`;
}

/** A Python that has grpcio, protobuf and NumPy, found as test/e2e/setup.sh does. */
export async function findPython(): Promise<string> {
  for (const candidate of [Deno.env.get("PYTHON") ?? "python3", "/usr/bin/python3"]) {
    try {
      await run(candidate, ["-c", "import grpc, numpy, google.protobuf"]);
      return candidate;
    } catch {
      // The next one.
    }
  }
  throw new Unavailable("needs a Python with grpcio, protobuf and NumPy (test/e2e/setup.sh says how)");
}

/** Generates the Python stubs into a folder. */
export async function makeStubs(python: string, folder: string): Promise<void> {
  await need(
    "grpcio-tools, or protoc with grpc_python_plugin",
    () => run(`${ROOT}examples/python_client/generate.sh`, [folder], { env: { PYTHON: python } }),
  );
}

/** Builds the C++ server, and gives the program. */
export async function buildCppServer(): Promise<string> {
  const build = cacheFolder("cpp");
  await need(
    "make, g++, protobuf-compiler, protobuf-compiler-grpc and libgrpc++-dev",
    () => run("make", ["-C", `${ROOT}test/bench/cpp`, `BUILD=${build}`]),
  );
  return `${build}/server`;
}

/** Makes one file of the bare server that Node runs, and gives its path. */
export async function bundleBareServer(folder: string): Promise<string> {
  const version = await need("Node 20 or later", () => run("node", ["--version"]));
  // Where there is no Node, Deno puts a link to itself under that name on its PATH.
  const [, major] = /^v(\d+)/.exec(version) ?? [];
  if (Number(major ?? 0) < 20) throw new Unavailable(`needs Node 20 or later (got ${version.split("\n")[0]})`);
  const file = `${folder}/bare_server.mjs`;
  await run(Deno.execPath(), ["bundle", "--quiet", "--platform=deno", "-o", file, "test/bench/bare_server.ts"], {
    cwd: ROOT,
  });
  return file;
}

/** A virtual environment with what a rival's requirements.txt pins, made at first use; gives its `bin`. */
export async function rivalEnvironment(rival: string): Promise<string> {
  const requirements = `${ROOT}test/bench/rivals/${rival}/requirements.txt`;
  const pins = new TextEncoder().encode(await Deno.readTextFile(requirements));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", pins)).toHex().slice(0, 12);
  const folder = cacheFolder(`${rival}-${digest}`);
  const done = `${folder}/installed`;
  if (await Deno.stat(done).then(() => true, () => false)) return `${folder}/bin`;
  console.error(`Installing ${rival} into ${folder}`);
  await need("a Python with venv, and PyPI", async () => {
    await run(Deno.env.get("PYTHON") ?? "python3", ["-m", "venv", "--clear", folder]);
    await run(`${folder}/bin/pip`, ["install", "--quiet", "--disable-pip-version-check", "-r", requirements]);
  });
  await Deno.writeTextFile(done, "");
  return `${folder}/bin`;
}

/** A port that was free a moment ago, for servers that cannot say which one they took. */
export function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return (listener.addr as Deno.NetAddr).port;
}
