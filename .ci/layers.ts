// What may import what, as data, and the check that holds it. `deno run -A .ci/layers.ts` prints what is wrong.

/** A row: the modules it is about, and what they may import. The first row that fits a module is its row. */
export interface Row {
  /** `*` is part of a path segment, `**` any path; `<p>` a segment that stands for the same one in the other columns. */
  readonly modules: string;
  /** What may be imported in any way. Packages are written `npm:name`, `jsr:name`, `node:name`. */
  readonly may: readonly string[];
  /** What may also be imported as types. */
  readonly types?: readonly string[];
  /** What may also be imported by `import()`. */
  readonly dynamic?: readonly string[];
}

const CORE = "runtime/core/**";
const ADAPTER = "runtime/protocols/adapter.ts";
const OPENAPI = "runtime/protocols/openapi.ts";
// Used by every protocol's folder; they know no protocol and no transport.
const PROTOCOL_SHARED = "runtime/protocols/*.ts";
// What sessions are to those who keep them, and what the stores share.
const STORE_SHARED = [
  "runtime/middleware/session_store.ts",
  "runtime/stores/lease_lock.ts",
  "runtime/stores/lease_state.ts",
  "runtime/stores/record.ts",
];
// What a supervisor holds: it must stay light, so nothing that only a server needs.
const SUPERVISOR = [
  "deno.json",
  "runtime/core/log.ts",
  "runtime/core/signal.ts",
  "runtime/host/address.ts",
  "runtime/host/blame.ts",
  "runtime/host/child.ts",
  "runtime/host/command_line.ts",
  "runtime/host/control.ts",
  "runtime/host/control_socket.ts",
  "runtime/host/error.ts",
  "runtime/host/heartbeat.ts",
  "runtime/host/keep_alive.ts",
  "runtime/host/log_format.ts",
  "runtime/host/ports.ts",
  "runtime/host/shared_folder.ts",
  "runtime/host/slot.ts",
  "runtime/host/status.ts",
  "runtime/host/supervise.ts",
  "runtime/host/supervisor.ts",
  "runtime/host/turns.ts",
  "runtime/workers/wrapper.ts",
];
const ANYTHING = ["**", "npm:**", "jsr:**", "node:**"];

/** The import rule: the layers below each module, for values and types alike. */
export const TABLE: readonly Row[] = [
  { modules: "**_test.ts", may: ANYTHING },
  { modules: "test/**", may: ANYTHING },
  { modules: ".ci/**", may: [".ci/**", "npm:**"] },
  {
    modules: "mod.ts",
    may: [CORE],
    types: ["runtime/assembly.ts", "runtime/middleware/*", ADAPTER, "runtime/host/*"],
    dynamic: ["runtime/host/*", "runtime/stores/*"],
  },
  { modules: CORE, may: [CORE] },
  { modules: "runtime/middleware/tracing*.ts", may: [CORE, "runtime/middleware/**", "npm:@opentelemetry/api"] },
  { modules: "runtime/middleware/**", may: [CORE, "runtime/middleware/**"] },
  // Nothing that only one store needs is loaded for another one.
  {
    modules: "runtime/stores/redis.ts",
    may: [CORE, ...STORE_SHARED, "runtime/stores/redis_scripts.ts", "node:buffer"],
    types: ["npm:@redis/client"],
    dynamic: ["npm:@redis/client"],
  },
  { modules: "runtime/stores/open.ts", may: STORE_SHARED, dynamic: ["runtime/stores/*"] },
  { modules: "runtime/stores/**", may: [CORE, ...STORE_SHARED, "node:v8"] },
  { modules: "runtime/assembly.ts", may: [CORE, "runtime/middleware/**", ADAPTER, OPENAPI] },
  {
    modules: "runtime/testing.ts",
    may: [
      CORE,
      "runtime/middleware/**",
      "runtime/assembly.ts",
      "runtime/transports/memory.ts",
      "runtime/workers/inline.ts",
    ],
    types: [ADAPTER, "runtime/transports/http/app.ts"],
    dynamic: ["runtime/protocols/mod.ts", "runtime/transports/http/app.ts"],
  },
  // What runs in an instance must need no permission, so packages and Node stay out of it.
  { modules: "runtime/workers/process*.ts", may: [CORE, "runtime/workers/**", "node:crypto"] },
  { modules: "runtime/workers/frames.ts", may: [CORE, "runtime/workers/**", "node:buffer", "node:v8"] },
  // Loaded for functions, which import it.
  { modules: "runtime/workers/function_file.ts", may: ["mod.ts"] },
  { modules: "runtime/workers/**", may: [CORE, "runtime/workers/**"] },
  { modules: "runtime/protocols/mod.ts", may: ["runtime/protocols/*/adapter.ts"], types: [ADAPTER] },
  { modules: ADAPTER, may: [CORE] },
  { modules: "runtime/protocols/codec.ts", may: [CORE, PROTOCOL_SHARED, "npm:@grpc/proto-loader"] },
  { modules: "runtime/protocols/descriptor.ts", may: [CORE, PROTOCOL_SHARED, "npm:@grpc/proto-loader"] },
  { modules: PROTOCOL_SHARED, may: [CORE, PROTOCOL_SHARED] },
  // It gives out the wire contracts as texts.
  {
    modules: "runtime/protocols/console/files.ts",
    may: [CORE],
    dynamic: ["runtime/protocols/console/static/**", "protos/**"],
  },
  {
    modules: "runtime/protocols/metrics/**",
    may: [CORE, PROTOCOL_SHARED, "runtime/protocols/metrics/**", "deno.json"],
    dynamic: ["npm:prom-client"],
  },
  { modules: "runtime/protocols/openapi/**", may: [CORE, PROTOCOL_SHARED, "deno.json"] },
  { modules: "runtime/protocols/oip_v2/describe.ts", may: [CORE, "runtime/protocols/oip_v2/**", "deno.json"] },
  { modules: "runtime/protocols/<p>/**", may: [CORE, PROTOCOL_SHARED, "runtime/protocols/<p>/**"] },
  {
    modules: "runtime/transports/grpc/**",
    may: [
      CORE,
      ADAPTER,
      "runtime/protocols/codec.ts",
      "runtime/transports/deno_span.ts",
      "runtime/transports/listener.ts",
      "runtime/transports/run_method.ts",
      "runtime/transports/grpc/**",
      "npm:@grpc/grpc-js",
      "node:**",
    ],
  },
  {
    modules: "runtime/transports/http/**",
    may: [
      CORE,
      ADAPTER,
      "runtime/protocols/http.ts",
      "runtime/transports/deno_span.ts",
      "runtime/transports/listener.ts",
      "runtime/transports/run_method.ts",
      "runtime/transports/http/**",
      "npm:hono",
      "npm:@hono/node-server",
      "node:http",
    ],
    types: ["node:net"],
  },
  { modules: "runtime/transports/listener.ts", may: [], types: ["node:net"] },
  { modules: "runtime/transports/*.ts", may: [CORE, ADAPTER, "runtime/transports/run_method.ts"] },
  { modules: "runtime/client.ts", may: [CORE, "runtime/client/**"] },
  // It knows no server: only what both ends of a wire share.
  {
    modules: "runtime/client/**",
    may: [
      CORE,
      "runtime/client/**",
      "runtime/protocols/inference/tensor.ts",
      "runtime/transports/grpc/frames.ts",
      "runtime/transports/grpc/http2_patch.ts",
      "npm:@grpc/grpc-js",
      "npm:@grpc/proto-loader",
      "npm:@opentelemetry/api",
      "node:process",
    ],
  },
  {
    modules: "runtime/call/**",
    may: [
      CORE,
      "runtime/call/**",
      "runtime/client.ts",
      "runtime/host/error.ts",
      "runtime/host/options.ts",
      "runtime/protocols/inference/dtype.ts",
      "runtime/protocols/inference/tensor.ts",
      "npm:commander",
      "node:process",
      "node:readline",
    ],
  },
  { modules: "runtime/generate/**", may: [CORE, "runtime/generate/**"] },
  // What `init` copies knows only what a project does.
  {
    modules: "runtime/host/template/**",
    may: ["mod.ts", "runtime/client.ts", "runtime/host/template/**", "node:**"],
  },
  { modules: "runtime/host/config.ts", may: ["runtime/**", "npm:commander"] },
  { modules: "runtime/host/options.ts", may: ["runtime/host/error.ts", "npm:commander"] },
  { modules: "runtime/host/cli.ts", may: SUPERVISOR, dynamic: ["runtime/host/*", "runtime/call/call_command.ts"] },
  ...SUPERVISOR.map((modules) => ({ modules, may: [...SUPERVISOR, "node:child_process"], types: ["runtime/**"] })),
  { modules: "runtime/host/supervised.ts", may: ["runtime/**", "node:process"] },
  { modules: "runtime/host/**", may: ["runtime/**", "deno.json"] },
  { modules: "functions/**", may: ["mod.ts", "functions/**", "npm:**", "node:**"] },
  { modules: "examples/*.ts", may: ["runtime/client.ts", "functions/**", "npm:**"] }, // the README has such a one made
  { modules: "examples/<story>/**", may: ["mod.ts", "runtime/testing.ts", "examples/<story>/**", "npm:**"] },
];

/** Not to be imported by what is no test: what helps tests, and tests. */
const TESTS = matcher(["test/**", "**_test.ts"]);

export const MAX_LINES = 500;

/** Files that may be longer, and why. */
export const LONG_FILES: Readonly<Record<string, string>> = {
  "test/e2e/cases_tensor.py": "a table of cases",
};

export type ImportKind = "static" | "dynamic" | "type";

/** An import; a package's version is left out of `to`. */
export interface Import {
  readonly from: string;
  readonly line: number;
  readonly to: string;
  readonly kind: ImportKind;
}

/** The project as the checks see it; paths are relative to its root. */
export interface Graph {
  /** Lines of each source file. */
  readonly files: ReadonlyMap<string, number>;
  readonly imports: readonly Import[];
}

/** Returns what is wrong, one line each. */
export function checkGraph(
  graph: Graph,
  table: readonly Row[] = TABLE,
  longFiles: Readonly<Record<string, string>> = LONG_FILES,
): string[] {
  return [...checkImports(graph, table), ...checkCycles(graph), ...checkFiles(graph, longFiles)];
}

function* checkImports({ imports }: Graph, table: readonly Row[]): Generator<string> {
  for (const { from, line, to, kind } of imports) {
    const row = table.find(({ modules }) => pattern(modules).test(from));
    if (!row) {
      yield `${from}: no row of the import table is about it`;
      continue;
    }
    const { groups } = pattern(row.modules).exec(from)!;
    const may = [...row.may, ...kind === "type" ? row.types ?? [] : [], ...kind === "dynamic" ? row.dynamic ?? [] : []];
    if (!matcher(may, groups)(to)) yield `${from}:${line}: may not import ${to} (${kind})`;
    if (TESTS(to) && !TESTS(from)) yield `${from}:${line}: imports ${to}, which is for tests`;
  }
}

function* checkCycles({ imports }: Graph): Generator<string> {
  const next = new Map<string, string[]>();
  for (const { from, to } of imports) next.set(from, [...next.get(from) ?? [], to]);
  const done = new Set<string>();
  const path: string[] = [];
  function* visit(module: string): Generator<string> {
    const start = path.indexOf(module);
    if (start >= 0) yield `import cycle: ${[...path.slice(start), module].join(" -> ")}`;
    if (start >= 0 || done.has(module)) return;
    path.push(module);
    for (const to of new Set(next.get(module))) yield* visit(to);
    path.pop();
    done.add(module);
  }
  for (const module of next.keys()) yield* visit(module);
}

function* checkFiles({ files }: Graph, longFiles: Readonly<Record<string, string>>): Generator<string> {
  for (const [path, lines] of files) {
    if (lines > MAX_LINES && !(path in longFiles)) yield `${path}: ${lines} lines, over ${MAX_LINES}`;
    if (/(^|\/)index\.\w+$/.test(path)) yield `${path}: a folder's entry is called mod.ts`;
  }
  for (const path of Object.keys(longFiles)) {
    if ((files.get(path) ?? 0) <= MAX_LINES) yield `${path}: needs no exemption from ${MAX_LINES} lines (any more)`;
  }
}

function pattern(glob: string, values: Readonly<Record<string, string>> = {}): RegExp {
  const source = glob.replaceAll(/\*\*|\*|<(\w+)>|[^\w/]/g, (part, name?: string) => {
    if (part === "**") return ".*";
    if (part === "*") return "[^/]*";
    if (name === undefined) return `\\${part}`;
    return name in values ? RegExp.escape(values[name]!) : `(?<${name}>[^/]+)`;
  });
  return new RegExp(`^${source}$`);
}

// `**` alone means the project's own files, not packages.
function matcher(globs: readonly string[], values?: Readonly<Record<string, string>>): (path: string) => boolean {
  const patterns = globs.map((glob) => pattern(glob, values));
  const isPackage = (text: string) => /^(npm|jsr|node):/.test(text);
  return (path) => globs.some((glob, i) => isPackage(glob) === isPackage(path) && patterns[i]!.test(path));
}

const SOURCES = /\.(ts|js|py|go|sh)$/;
// What tools put there, what they generate, and what others wrote.
const SKIPPED = new Set([".git", "node_modules", "coverage", "__pycache__", "gen", "vendor"]);

async function* walk(folder: URL, prefix = ""): AsyncGenerator<string> {
  const entries = await Array.fromAsync(Deno.readDir(folder));
  for (const { name, isDirectory } of entries.sort((a, b) => a.name < b.name ? -1 : 1)) {
    if (isDirectory && !SKIPPED.has(name)) {
      yield* walk(new URL(`${encodeURIComponent(name)}/`, folder), `${prefix}${name}/`);
    }
    if (!isDirectory && SOURCES.test(name)) yield prefix + name;
  }
}

interface InfoSpan {
  readonly specifier?: string;
  readonly error?: string;
  readonly span: { readonly start: { readonly line: number } };
}

/** The part of `deno info --json` that is read here. */
interface Info {
  readonly modules: readonly {
    readonly specifier: string;
    readonly error?: string;
    readonly dependencies?: readonly {
      readonly specifier: string;
      readonly code?: InfoSpan;
      readonly type?: InfoSpan;
      readonly isDynamic?: boolean;
    }[];
  }[];
}

/** Reads the project's files and what `deno info` says of their imports. */
export async function readGraph(root: URL): Promise<Graph> {
  const files = new Map<string, number>();
  for await (const path of walk(root)) {
    const text = await Deno.readTextFile(new URL(encodeURI(path), root));
    files.set(path, text.split("\n").length - (text.endsWith("\n") ? 1 : 0));
  }
  const modules = [...files.keys()].filter((path) => path.endsWith(".ts"));
  const info = await denoInfo(root, modules.map((path) => new URL(encodeURI(path), root).href));
  const imports: Import[] = [];
  for (const { specifier, error, dependencies = [] } of info.modules) {
    const from = relative(specifier, root);
    if (error !== undefined && files.has(from)) throw new Error(`Cannot read the imports of ${from}: ${error}`);
    if (!files.has(from)) continue;
    for (const { specifier, code, type, isDynamic } of dependencies) {
      const add = (target: InfoSpan, kind: ImportKind) => {
        if (target.error !== undefined) throw new Error(`Cannot resolve ${specifier} of ${from}: ${target.error}`);
        imports.push({ from, line: target.span.start.line + 1, to: relative(target.specifier!, root), kind });
      };
      if (code) add(code, isDynamic ? "dynamic" : "static");
      if (type) add(type, "type");
    }
  }
  return { files, imports };
}

// One module that imports them all spares a process for each.
async function denoInfo(root: URL, modules: readonly string[]): Promise<Info> {
  const entry = await Deno.makeTempFile({ suffix: ".ts" });
  try {
    await Deno.writeTextFile(entry, modules.map((module) => `import ${JSON.stringify(module)};\n`).join(""));
    const config = decodeURIComponent(new URL("deno.json", root).pathname);
    const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["info", "--json", "--config", config, entry],
    }).output();
    if (!success) throw new Error(`Cannot read the imports: ${new TextDecoder().decode(stderr)}`);
    return JSON.parse(new TextDecoder().decode(stdout));
  } finally {
    await Deno.remove(entry);
  }
}

function relative(specifier: string, root: URL): string {
  if (specifier.startsWith(root.href)) return decodeURIComponent(specifier.slice(root.href.length));
  return specifier.replace(/^(npm|jsr):\/?(@[^/]+\/[^/@]+|[^/@]+).*$/, "$1:$2");
}

if (import.meta.main) {
  const graph = await readGraph(new URL("../", import.meta.url));
  const problems = checkGraph(graph);
  for (const problem of problems) console.error(problem);
  console.log(`layers: ${graph.files.size} files, ${graph.imports.length} imports, ${problems.length} problems`);
  Deno.exit(problems.length > 0 ? 1 : 0);
}
