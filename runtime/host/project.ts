// What `init` writes: the files of template/, and a deno.json that finds this Tensorlet.

/** What of Tensorlet's own deno.json a project needs. */
export interface TensorletConfig {
  readonly imports: Readonly<Record<string, string>>;
  readonly unstable: readonly string[];
}

const TEMPLATE = new URL("./template/", import.meta.url);
/** What is copied from the template; the tools of this repository check it and run its test there. */
const COPIED = [
  "functions/scale.ts",
  "functions/scale_test.ts",
  "functions/functions.json",
  "client.ts",
  "README.md",
] as const;

/** The files of a new project by their paths in it; `root` is the folder of this Tensorlet, with a slash. */
export async function projectFiles(root: URL, config: TensorletConfig): Promise<ReadonlyMap<string, string>> {
  const copies = COPIED.map(async (path) => [path, await Deno.readTextFile(new URL(path, TEMPLATE))] as const);
  return new Map([
    ["deno.json", `${JSON.stringify(denoJson(root, config), null, 2)}\n`],
    ...await Promise.all(copies),
    [".gitignore", "coverage/\nnode_modules/\n"],
  ]);
}

/** A project's deno.json. */
export function denoJson(root: URL, { imports, unstable }: TensorletConfig): object {
  const entries = Object.entries(imports);
  const own = entries.filter(([, target]) => target.startsWith("./"));
  return {
    imports: Object.fromEntries(own.map(([name, target]) => [name, new URL(target, root).href])),
    // Modules are resolved by the deno.json of whoever imports them: these are for Tensorlet's alone.
    scopes: { [root.href]: Object.fromEntries(entries.filter((entry) => !own.includes(entry))) },
    unstable,
    fmt: { lineWidth: 120 },
    tasks: {
      serve: "deno run -A tensorlet",
      test: "deno test --no-prompt",
      client: "deno run --allow-env --allow-net=127.0.0.1 client.ts",
    },
  };
}
