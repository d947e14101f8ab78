// Finds the functions of a folder and imports them.
import { isModel, type ResolvedModel, resolveModel } from "../core/define.ts";
import { ConfigError } from "./error.ts";

/** A file that holds a function. */
export interface FunctionFile {
  /** From the file's or the folder's name. */
  readonly name: string;
  /** From `NAME@VERSION`. */
  readonly version: string | undefined;
  readonly url: URL;
}

/** The function files of a folder, by name. Throws `ConfigError` where there are none. */
export async function findFunctions(base: URL): Promise<readonly FunctionFile[]> {
  const dir = decodeURIComponent(base.pathname).replace(/\/$/, "");
  const files: FunctionFile[] = [];
  try {
    for await (const { name, isDirectory } of Deno.readDir(base)) {
      if (/^[._]/.test(name)) continue;
      if (isDirectory ? await isFile(new URL(`${encodeURIComponent(name)}/mod.ts`, base)) : isFunctionFile(name)) {
        const stem = isDirectory ? name : name.slice(0, -".ts".length);
        const [model, version] = stem.split("@", 2);
        const path = isDirectory ? `${encodeURIComponent(name)}/mod.ts` : encodeURIComponent(name);
        files.push({ name: model!, version, url: new URL(path, base) });
      }
    }
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) throw new ConfigError(`Cannot serve "${dir}": there is no such folder`);
    if (error instanceof Deno.errors.NotADirectory) throw new ConfigError(`Cannot serve "${dir}": it is no folder`);
    throw error;
  }
  if (files.length === 0) {
    throw new ConfigError(
      `Cannot serve "${dir}": it holds no function, wanted NAME.ts, NAME@VERSION.ts or NAME/mod.ts`,
    );
  }
  return files.sort((a, b) => a.url.href.localeCompare(b.url.href));
}

/** A folder's URL, from its path or URL. */
export function folderUrl(dir: string): URL {
  const cwd = new URL(`file://${Deno.cwd().split("/").map(encodeURIComponent).join("/")}/`);
  const path = dir.startsWith("file:") ? dir : dir.split("/").map(encodeURIComponent).join("/");
  return new URL(path.endsWith("/") ? path : `${path}/`, cwd);
}

function isFunctionFile(name: string): boolean {
  return name.endsWith(".ts") && !/(_test|_bench|\.d)\.ts$/.test(name);
}

async function isFile(url: URL): Promise<boolean> {
  try {
    return (await Deno.stat(url)).isFile;
  } catch {
    return false;
  }
}

/**
 * Imports a function into this event loop. Throws what is wrong with it. `revision` other than 0 imports it anew, but
 * not what it imports: only a worker begins with nothing.
 */
export async function importFunction(file: FunctionFile, revision = 0): Promise<ResolvedModel> {
  const query = revision === 0 ? "" : `?v=${revision}`;
  const module: { readonly default?: unknown } = await import(file.url.href + query);
  if (!isModel(module.default)) {
    throw new TypeError(
      `Cannot serve the file: its default export ${
        "default" in module ? "is not what defineModel({...}) returns" : "is missing"
      }`,
    );
  }
  return resolveModel(module.default, file.name, file.version);
}
