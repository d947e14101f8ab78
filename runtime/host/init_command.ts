// `deno run -A mod.ts init DIR`: a new project.
import denoConfig from "../../deno.json" with { type: "json" };
import { parseInitConfig } from "./config.ts";
import { ConfigError } from "./error.ts";
import { folderUrl } from "./loader.ts";
import { projectFiles } from "./project.ts";

const ROOT = new URL("../../", import.meta.url);

/** Runs the command; resolves to the exit status. Throws `ConfigError`. */
export async function init(args: readonly string[]): Promise<number> {
  const config = parseInitConfig(args);
  if ("print" in config) {
    console.log(config.print.trimEnd());
    return 0;
  }
  const { dir } = config;
  const files = await projectFiles(ROOT, denoConfig);
  await writeProject(dir, files);
  console.log(formatNextSteps(dir, files));
  return 0;
}

/** Writes files into a folder that is new or empty. Throws `ConfigError`. */
async function writeProject(dir: string, files: ReadonlyMap<string, string>): Promise<void> {
  if (dir === "") throw new ConfigError("Cannot make a project: the folder's name is empty");
  const base = folderUrl(dir);
  try {
    await Deno.mkdir(base, { recursive: true });
    for await (const { name } of Deno.readDir(base)) {
      throw new ConfigError(`Cannot make a project in "${dir}": it holds "${name}", wanted a new or empty folder`);
    }
    await Deno.mkdir(new URL("functions/", base));
    for (const [path, text] of files) await Deno.writeTextFile(new URL(path, base), text, { createNew: true });
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError(`Cannot make a project in "${dir}": ${problemOf(error)}`);
  }
}

function problemOf(error: unknown): string {
  if (error instanceof Deno.errors.AlreadyExists || error instanceof Deno.errors.NotADirectory) {
    return "a part of the path is a file, wanted a folder";
  }
  if (error instanceof Deno.errors.PermissionDenied) return "permission denied";
  return error instanceof Error ? error.message.replace(/(: \w+)? '?\/.*$/s, "") : String(error);
}

function formatNextSteps(dir: string, files: ReadonlyMap<string, string>): string {
  const enter = folderUrl(dir).href === folderUrl(".").href ? [] : [`  cd ${shellWord(dir)}`];
  return [
    `Made a project in ${dir}:`,
    ...[...files.keys()].map((path) => `  ${path}`),
    "",
    "Next:",
    ...enter,
    "  deno task test    # the function's test",
    "  deno task serve   # serves functions/ on 127.0.0.1:50051",
    "  deno task client  # in another terminal: calls it",
  ].join("\n");
}

function shellWord(text: string): string {
  const path = text.startsWith("-") ? `./${text}` : text;
  return /^[\w./@+-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}
