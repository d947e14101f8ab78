// Every code block of the READMEs is run, in order and as it is written, in a copy of the project: what they say works.
//
// - ts: `// file: PATH` as first line is written there (a test is run without permissions, another file outside of
//   functions/ with all); a block without it is run as a module of its own. All are type-checked.
// - sh, bash, console: run as one script; in console the lines below a `$ ` line are what it has to print. A server that
//   is started has to come up, and to end well when it is told to.
// - python: run where grpcio is, if TENSORLET_E2E is set, as it is by .ci/run. json, jsonc: parsed, written if a path is given.
// - proto: every line has to be in protos/. text: is no code, and has to look like none.
import { assert, assertEquals, assertExists, assertMatch, assertRejects, assertStringIncludes } from "tensorlet/assert";

const ROOT = new URL("../", import.meta.url);
const FILES = ["README.md", "runtime/README.md"];
const IS_E2E = Boolean(Deno.env.get("TENSORLET_E2E"));
const BLOCK_LIMIT_MS = 180_000;

/** Blocks that are not run, by "FILE: HEADING #N", and why. An entry that fits no block fails. */
const NOT_RUN: Readonly<Record<string, string>> = {};

/** Lines of scripts that are not run, and why. One that fits no line of any script fails. */
const NOT_RUN_LINES: readonly (readonly [line: RegExp, reason: string])[] = [
  [/^deno task (test|check)$/, "this test is part of the one, and the gate runs the other before it"],
];

/** Tools that not every machine has. Where they are missing their blocks are left out, but not by .ci/run. */
const TOOLS: Readonly<Record<string, RegExp>> = {
  python3: /\bpython3?\b|\bgenerate\.sh\b/,
  go: /\bgo (run|build)\b|\bgo_client\b/,
  grpcurl: /\bgrpcurl\b/,
};

const STARTS_SERVER = /\brun\b.*\bmod\.ts\b(?! (call|init|generate)\b)(?!.*(--help|--version))|\bdeno task serve\b/;
const CALLS_SERVER = /\b50051\b|:8080\b|\.py\b|\bgo (run|build)\b|\bgo_client\b|\bmod\.ts (call|generate)\b(?! --help)/;

interface Block {
  readonly name: string;
  readonly language: string;
  readonly text: string;
}

/** The fenced blocks of a Markdown text. */
function parseBlocks(file: string, markdown: string): Block[] {
  const blocks: Block[] = [];
  let heading = "";
  let count = 0;
  let open: { readonly fence: string; readonly indent: number; readonly language: string; lines: string[] } | undefined;
  for (const line of markdown.split("\n")) {
    const fence = /^(\s*)(`{3,}|~{3,})\s*(\S*)/.exec(line);
    if (open) {
      if (fence && fence[3] === "" && fence[2]!.startsWith(open.fence)) {
        blocks.push({ name: `${file}: ${heading} #${++count}`, language: open.language, text: open.lines.join("\n") });
        open = undefined;
      } else {
        open.lines.push(line.slice(open.indent));
      }
    } else if (fence) {
      open = { fence: fence[2]!, indent: fence[1]!.length, language: fence[3]!, lines: [] };
    } else if (/^#+ /.test(line)) {
      heading = line.replace(/^#+ /, "");
      count = 0;
    }
  }
  assert(!open, `${file}: the block under "${heading}" does not end`);
  return blocks;
}

/** Splits off the first line where it names a file. */
function fileOf(text: string): { readonly path: string | undefined; readonly rest: string } {
  const match = /^(?:\/\/|#) file: (\S+)\n/.exec(text);
  return { path: match?.[1], rest: match ? text.slice(match[0].length) : text };
}

interface Result {
  readonly code: number;
  readonly output: string;
}

async function run(command: string, args: readonly string[], options: Deno.CommandOptions = {}): Promise<Result> {
  const script = new Deno.Command(command, {
    ...options,
    args: [...args],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
  const child = script.spawn();
  const timer = setTimeout(() => child.kill("SIGKILL"), BLOCK_LIMIT_MS);
  try {
    const { code, stdout, stderr } = await child.output();
    return { code, output: new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr) };
  } finally {
    clearTimeout(timer);
  }
}

// Stands for `deno` and `npx` in scripts: a server is stopped once it is up, and its status is the command's. Without
// .ci/run, `npx -y deno@VERSION` is the deno that runs this test.
const SHIM = `#!/bin/bash
if [ -n "$VIA_DENO" ]; then shift 2; set -- "$VIA_DENO" "$@"; else set -- "$REAL" "$@"; fi
[[ " $* " =~ " run ".*mod\\.ts && ! " $* " =~ (--help|--version|mod\\.ts\\ (list|call|init|generate)) || " $* " == *" task serve "* || -n "\${SERVES:-}" ]] || exec "$@"
out=$(mktemp)
case $REAL in */npx) setsid "$@" >"$out" 2>&1 & ;; *) "$@" >"$out" 2>&1 & ;; esac
pid=$!
ready=
for ((i = 0; i < 600; i++)); do
  kill -0 $pid 2>/dev/null || break
  if grep -qw ready "$out"; then ready=1; break; fi
  if [ -n "\${SERVES:-}" ] && (: <>/dev/tcp/127.0.0.1/$README_PORT) 2>/dev/null; then ready=1; break; fi
  sleep 0.1
done
# npx has the server (a supervisor and its child) as grandchildren, and a status of its own when it is told to end too.
found=
for stat in /proc/[0-9]*/stat; do
  [[ $(cat $stat 2>/dev/null) =~ ^([0-9]+)\\ \\(deno\\)\\ .\\ [0-9]+\\ $pid\\  ]] && found+=" \${BASH_REMATCH[1]}"
done
server=\${found:-$pid}
kill -TERM $server 2>/dev/null
(sleep 30; kill -KILL $server) >/dev/null 2>&1 &
watchdog=$!
wait $pid
code=$?
kill $watchdog 2>/dev/null
cat "$out"
rm -f "$out"
[ -n "\${SERVES:-}" ] && [ $code = 143 ] && code=0
if [ -z "$ready" ] && [ $code = 0 ]; then echo "The server did not get ready"; code=99; fi
exit $code
`;

const COPY_WITHOUT = new Set([".git", "node_modules", "coverage", "__pycache__", "gen", "go_client"]);

function freePort(): string {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return String((listener.addr as Deno.NetAddr).port);
}

/** A copy of the project, whose ports 50051 and, for HTTP, 8080 are others that are free. */
class Workspace implements AsyncDisposable {
  readonly #path: string;
  readonly #port: string;
  readonly #httpPort = freePort();
  readonly #env: Readonly<Record<string, string>>;
  readonly #tools: ReadonlySet<string>;
  #scripts = 0;

  private constructor(path: string, port: string, env: Readonly<Record<string, string>>, tools: ReadonlySet<string>) {
    this.#path = path;
    this.#port = port;
    this.#env = env;
    this.#tools = tools;
  }

  static async create(): Promise<Workspace> {
    const path = await Deno.makeTempDir({ prefix: "tensorlet_readme_" });
    const port = freePort();
    const python = IS_E2E ? await findPython() : undefined;
    const tools = new Set<string>();
    if (python) tools.add("python3");
    for (const tool of ["go", "grpcurl"]) if (await which(tool)) tools.add(tool);
    const bin = `${path}/bin`;
    await Deno.mkdir(bin);
    const shim = async (name: string, real: string, viaDeno = "") => {
      const lines = SHIM.split("\n");
      const text = [lines[0], `REAL='${real}' VIA_DENO='${viaDeno}'`, ...lines.slice(1)].join("\n");
      await Deno.writeTextFile(`${bin}/${name}`, text, { mode: 0o755 });
    };
    await shim("deno", Deno.execPath());
    await shim("npx", await which("npx") ?? "npx", IS_E2E ? "" : Deno.execPath());
    if (python) {
      for (const name of ["python", "python3"]) {
        await Deno.writeTextFile(`${bin}/${name}`, `#!/bin/sh\nexec '${python}' "$@"\n`, { mode: 0o755 });
      }
    }
    const env = {
      PATH: `${bin}:${Deno.env.get("PATH")}`,
      README_PORT: port,
      NO_COLOR: "1",
      PYTHONDONTWRITEBYTECODE: "1",
      ...python && { PYTHON: python },
    };
    const workspace = new Workspace(`${path}/project`, port, env, tools);
    await workspace.#copy("", `${path}/project`);
    return workspace;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.#path.replace(/project$/, ""), { recursive: true });
  }

  async #copy(from: string, to: string): Promise<void> {
    await Deno.mkdir(to);
    for await (const { name, isDirectory } of Deno.readDir(new URL(from, ROOT))) {
      if (COPY_WITHOUT.has(name)) continue;
      const source = from + encodeURIComponent(name);
      if (isDirectory) await this.#copy(`${source}/`, `${to}/${name}`);
      else if (!/\.(ts|py|go|sh)$/.test(name)) await Deno.copyFile(new URL(source, ROOT), `${to}/${name}`);
      else {
        const { mode } = await Deno.stat(new URL(source, ROOT));
        const text = await Deno.readTextFile(new URL(source, ROOT));
        await Deno.writeTextFile(`${to}/${name}`, this.#withPort(text), { mode: mode! & 0o777 });
      }
    }
  }

  #withPort(text: string): string {
    return text.replaceAll(/\b50051\b/g, this.#port).replaceAll(/\b8080\b/g, this.#httpPort);
  }

  /** Names a tool that the block needs and this machine lacks. */
  missingTool({ language, text }: Block): string | undefined {
    if (!/^(sh|bash|console|python)$/.test(language)) return undefined;
    const needs = (tool: string) => TOOLS[tool]!.test(text) || language === tool.replace(/\d$/, "");
    return Object.keys(TOOLS).find((tool) => needs(tool) && !this.#tools.has(tool));
  }

  /** Runs a block; throws where it does not do what it should. */
  async run(block: Block): Promise<void> {
    switch (block.language) {
      case "ts":
        return await this.#withServer(block, () => this.#runModule(block.text));
      case "sh":
      case "bash":
        return await this.#withServer(block, () => this.#runScript(toScript(block.text)));
      case "console":
        return await this.#withServer(block, () => this.#runConsole(block.text));
      case "python":
        return await this.#withServer(block, () => this.#runPython(block.text));
      case "json":
      case "jsonc": {
        const { path, rest } = fileOf(block.text);
        JSON.parse(rest.replaceAll(/^\s*\/\/.*$/gm, ""));
        if (path) await Deno.writeTextFile(`${this.#path}/${path}`, rest);
        return;
      }
      case "proto":
        return await checkProto(block.text);
      case "text":
        for (const line of block.text.split("\n")) {
          assert(!/^\s*(\$|deno|npx|npm|python3?|go|import|export|const) /.test(line), `Is this really text? ${line}`);
        }
        return;
      default:
        throw new Error(`Cannot run a block of language "${block.language}"`);
    }
  }

  // What calls a server finds one that serves the functions as they are by now.
  async #withServer({ text }: Block, body: () => Promise<unknown>): Promise<void> {
    const callsServer = text.split("\n").some((line) => CALLS_SERVER.test(line) && !/^\s*(\/\/|#)/.test(line));
    if (!callsServer || STARTS_SERVER.test(text) || /\bserve\(/.test(text)) return void await body();
    const server = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "mod.ts"],
      cwd: this.#path,
      env: this.#env,
      stdout: "null",
      stderr: "piped",
    }).spawn();
    const { promise: ready, resolve } = Promise.withResolvers<void>();
    let log = "";
    const reading = (async () => {
      for await (const text of server.stderr.pipeThrough(new TextDecoderStream())) {
        log += text;
        if (/\bready\b/.test(log)) resolve();
      }
      resolve();
    })();
    try {
      await ready;
      assertMatch(log, /\bready\b/, `The server does not start:\n${log}`);
      await body();
    } finally {
      try {
        server.kill("SIGTERM");
      } catch {
        // It has ended; its status will say so.
      }
      await reading;
    }
    assertEquals((await server.status).code, 0, `The server did not end well:\n${log}`);
  }

  async #deno(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<void> {
    const { code, output } = await run(`${this.#path}/../bin/deno`, args, {
      cwd: this.#path,
      env: { ...this.#env, ...env },
    });
    assertEquals(code, 0, `deno ${args.join(" ")}: status ${code}\n${output}`);
    assert(!output.includes("Assertion failed"), output);
  }

  async #runModule(text: string): Promise<void> {
    const { path, rest } = fileOf(text);
    const file = path ?? `readme_block_${++this.#scripts}.ts`;
    const original = path && await Deno.readTextFile(new URL(path, ROOT)).catch(() => undefined);
    if (original !== undefined) {
      assertStringIncludes(original, rest, `${path} exists, and the block is not a part of it`);
    } else {
      await Deno.writeTextFile(`${this.#path}/${file}`, this.#withPort(rest));
      await this.#deno(["check", file]);
    }
    if (file.endsWith("_test.ts")) await this.#deno(["test", "--no-prompt", "--no-check", file]);
    else if (!file.startsWith("functions/")) {
      const serves = /\bserve\(/.test(rest) && rest.includes("50051");
      await this.#deno(["run", "-A", file], serves ? { SERVES: "1" } : {});
    }
  }

  async #runScript(script: string): Promise<string> {
    // Any port of a script is the one that is free.
    const ports = [...script.matchAll(/(?:--port[= ]|TENSORLET_PORT=)(\d+)/g)].map(([, port]) => port!);
    for (const port of ports) {
      if (port !== "0") script = script.replaceAll(new RegExp(`\\b${port}\\b`, "g"), this.#port);
    }
    const { code, output } = await run("bash", ["-c", `exec 2>&1\nset -eo pipefail\n${this.#withPort(script)}`], {
      cwd: this.#path,
      env: this.#env,
    });
    assertEquals(code, 0, `Status ${code} of the script\n${script}\n${output}`);
    return output;
  }

  async #runConsole(text: string): Promise<void> {
    const parts = text.split(/^\$ /m).slice(1).map((part) => {
      const lines = part.trimEnd().split("\n");
      const end = lines.findIndex((line) => !line.endsWith("\\"));
      return { command: lines.slice(0, end + 1).join("\n"), expected: lines.slice(end + 1) };
    });
    assert(parts.length > 0, "A console block begins its commands with `$ `");
    const mark = "--- next command ---";
    const script = parts.map(({ command }) => `echo '${mark}'\n${toScript(command)}`).join("\n");
    const outputs = (await this.#runScript(script)).replaceAll(this.#port, "50051").split(`${mark}\n`).slice(1);
    for (const [i, { command, expected }] of parts.entries()) checkOutput(command, expected, outputs[i]!);
  }

  async #runPython(text: string): Promise<void> {
    const { path = `readme_block_${++this.#scripts}.py`, rest } = fileOf(text);
    await Deno.writeTextFile(`${this.#path}/${path}`, this.#withPort(rest));
    const [folder, name] = path.includes("/") ? [path.replace(/\/[^/]*$/, ""), path.replace(/.*\//, "")] : [".", path];
    await this.#runScript(`cd ${folder}\npython3 ${name}`);
  }
}

/** A script as it is run: without the lines that are not, and with the statuses that some lines say they have. */
function toScript(text: string): string {
  return text.split("\n").map((line) => {
    if (NOT_RUN_LINES.some(([pattern]) => pattern.test(line.trim()))) return ":";
    const [, command, status] = /^(.*\S)\s+# exit (\d+)$/.exec(line) ?? [];
    if (command === undefined) return line;
    return `{ ${command}; } && { echo 'Status 0 instead of ${status}'; exit 1; } || [ $? = ${status} ]`;
  }).join("\n");
}

// In their order, each as a line; `…` and `...` stand for anything, and measured numbers are not compared.
function checkOutput(command: string, expected: readonly string[], output: string): void {
  const lines = output.split("\n").map((line) => line.trimEnd());
  let at = 0;
  for (const line of expected.map((line) => line.trimEnd())) {
    if (/^\s*(…|\.\.\.)?\s*$/.test(line)) continue;
    const source = line.split(/(…|\.\.\.|\d+(?:\.\d+)?(?=\s*(?:ms|µs|s|KB|MB|%)\b))/).map((part, i) =>
      i % 2 === 0 ? RegExp.escape(part) : /\d/.test(part) ? "\\d+(?:\\.\\d+)?" : ".*"
    );
    const found = lines.slice(at).findIndex((each) => new RegExp(`^${source.join("")}$`).test(each));
    assert(found >= 0, `${command}\ndoes not print (or not here)\n${line}\nbut\n${output}`);
    at += found + 1;
  }
}

async function checkProto(text: string): Promise<void> {
  const known = new Set<string>();
  const words = (line: string) => line.replace(/\/\/.*/, "").trim().replaceAll(/\s+/g, " ");
  const read = async (folder: URL): Promise<void> => {
    for await (const { name, isDirectory } of Deno.readDir(folder)) {
      if (isDirectory) await read(new URL(`${name}/`, folder));
      else for (const line of (await Deno.readTextFile(new URL(name, folder))).split("\n")) known.add(words(line));
    }
  };
  await read(new URL("protos/", ROOT));
  for (const line of text.split("\n")) assert(known.has(words(line)), `Not in protos/: ${line}`);
}

async function which(tool: string): Promise<string | undefined> {
  const { code, output } = await run("bash", ["-c", `command -v ${tool}`]);
  return code === 0 ? output.trim() : undefined;
}

async function findPython(): Promise<string | undefined> {
  for (const candidate of [Deno.env.get("PYTHON") ?? "python3", "/usr/bin/python3"]) {
    const path = await which(candidate);
    if (path && (await run(path, ["-c", "import grpc, numpy, google.protobuf"])).code === 0) return path;
  }
  return undefined;
}

const BLOCKS = new Map<string, readonly Block[]>();
for (const file of FILES) BLOCKS.set(file, parseBlocks(file, await Deno.readTextFile(new URL(file, ROOT))));

for (const [file, blocks] of BLOCKS) {
  Deno.test(`every block of ${file} works`, async (t) => {
    await using workspace = await Workspace.create();
    for (const block of blocks) {
      const missing = workspace.missingTool(block);
      const { name } = block;
      if (name in NOT_RUN) await t.step({ name: `${name}: ${NOT_RUN[name]}`, ignore: true, fn: () => {} });
      else if (missing && !IS_E2E) await t.step({ name: `${name}: needs ${missing}`, ignore: true, fn: () => {} });
      else await t.step(name, () => workspace.run(block));
    }
  });
}

Deno.test("the READMEs name one version of Deno, and tasks that there are", async () => {
  const { tasks } = JSON.parse(await Deno.readTextFile(new URL("deno.json", ROOT)));
  const ci = await Deno.readTextFile(new URL(".ci/run", ROOT));
  const pinned = /^PINNED=(\S+)$/m.exec(ci)?.[1];
  assertExists(pinned);
  for (const { name, text } of [...BLOCKS.values()].flat()) {
    for (const [, version] of text.matchAll(/\bdeno@(\S+)/g)) assertEquals(version, pinned, name);
    for (const [, task] of text.matchAll(/\bdeno task (\S+)/g)) assert(task! in tasks, `${name}: no task ${task}`);
  }
});

Deno.test("what is not run is there to be left out", () => {
  const blocks = [...BLOCKS.values()].flat();
  const names = new Set(blocks.map(({ name }) => name));
  assertEquals(Object.keys(NOT_RUN).filter((name) => !names.has(name)), []);
  const lines = blocks.filter(({ language }) => /^(sh|bash|console)$/.test(language))
    .flatMap(({ text }) => text.split("\n").map((line) => line.replace(/^\$ /, "").trim()));
  assertEquals(NOT_RUN_LINES.filter(([pattern]) => !lines.some((line) => pattern.test(line))), []);
});

const WRONG: readonly (readonly [what: string, language: string, text: string])[] = [
  ["a type error", "ts", 'const n: number = "one";'],
  ["an assertion that fails", "ts", "console.assert(1 + 1 === 3);"],
  ["an exception", "ts", 'throw new Error("no");'],
  ["a part of a file that says something else", "ts", "// file: functions/affine.ts\nexport const other = 1;"],
  ["a test that fails", "ts", '// file: functions/wrong_test.ts\nDeno.test("no", () => Deno.exit(1));'],
  ["a test that needs a permission", "ts", '// file: functions/reads_test.ts\nDeno.test("no", () => Deno.cwd());'],
  ["a command that fails", "sh", "true\nfalse\ntrue"],
  ["another status than said", "sh", "false # exit 2"],
  ["success where none is expected", "sh", "true # exit 2"],
  ["a server that does not start", "sh", "deno run -A mod.ts no/such/folder"],
  ["another output", "console", "$ echo one\ntwo"],
  ["another order", "console", "$ printf 'one\\ntwo\\n'\ntwo\none"],
  ["JSON that is none", "json", "{ warm: true }"],
  ["a message that is not in protos/", "proto", "message Other {}"],
  ["a command that calls itself text", "text", "$ deno task test"],
  ["an unknown language", "basic", "10 END"],
  ["no language", "", "anything"],
];

Deno.test("a block that is wrong fails", async (t) => {
  await using workspace = await Workspace.create();
  for (const [what, language, text] of WRONG) {
    await t.step(what, () => assertRejects(() => workspace.run({ name: what, language, text })).then(() => {}));
  }
  const good =
    "$ printf 'took 12 ms\\nend\\n'\ntook 3.5 ms\n…\n$ false # exit 1\n$ deno run -A mod.ts --version\ntensorlet ...";
  await t.step(
    "and one that is right does not",
    () => workspace.run({ name: "right", language: "console", text: good }),
  );
});

Deno.test("blocks are found with their language and heading, in lists and with longer fences too", () => {
  const markdown = "# A\n\n```ts\nlet a;\n```\n\n- x\n\n  ~~~sh\n  ls\n  ~~~\n\n## B\n\n````text\n```\n````\n";
  assertEquals(parseBlocks("F.md", markdown), [
    { name: "F.md: A #1", language: "ts", text: "let a;" },
    { name: "F.md: A #2", language: "sh", text: "ls" },
    { name: "F.md: B #1", language: "text", text: "```" },
  ]);
});
