// What is in a folder of functions right now: the files, what the host decided of each, and what tells that it changed.
import { findFunctions, type FunctionFile } from "./loader.ts";
import { type FunctionSettings, type Isolation, readManifest } from "./manifest.ts";

/** A function's file, and what the host decided of it. */
export interface FoundFunction extends FunctionFile {
  /** For people. */
  readonly path: string;
  readonly settings: FunctionSettings;
  /** What the function may read without being granted it: its own files, and the modules of the folder that it imports. */
  readonly assets: readonly string[];
  /** Differs after every change of the function's files, of what they import, or of its settings. */
  readonly fingerprint: string;
}

/** Reads a folder. Throws `ConfigError` where it holds no function, or its `functions.json` cannot be meant. */
export async function scanFolder(folder: URL, isolation: Isolation = "worker"): Promise<readonly FoundFunction[]> {
  const files = await findFunctions(folder);
  const manifest = await readManifest(folder, [...new Set(files.map(({ name }) => name))]);
  const siblings = (await filesBelow(folder, false)).map(({ href }) => href);
  const marks = new Map<string, Promise<Mark>>();
  return await Promise.all(files.map(async (file) => {
    const given = manifest.settingsOf(file.name);
    const settings = given.isolationPinned ? given : { ...given, isolation };
    const own = isFolder(file)
      ? await filesBelow(new URL(".", file.url), true)
      : siblings.filter((href) => href.startsWith(file.url.href.slice(0, -"ts".length))).map((href) => new URL(href));
    const files = await marksOf(own, marks);
    const assets = isFolder(file) ? [new URL(".", file.url)] : own;
    const modules = [...files.keys()].filter((href) => href.startsWith(folder.href) && MODULE.test(href));
    return {
      ...file,
      path: pathOf(file.url),
      settings,
      assets: [...new Set([...assets.map(({ href }) => href), ...modules])].map((href) =>
        pathOf(new URL(href)).replace(/\/$/, "")
      ),
      fingerprint: JSON.stringify([settings, [...files].sort()]),
    };
  }));
}

const MODULE = /\.[cm]?[jt]sx?$/;

/** What tells that a file changed, and what it imports. */
interface Mark {
  readonly text: string;
  readonly imports: readonly URL[];
}

// The marks of files and of everything that they import by a relative path, by URL.
async function marksOf(start: readonly URL[], marks: Map<string, Promise<Mark>>): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const follow = async (url: URL): Promise<void> => {
    if (found.has(url.href)) return;
    found.set(url.href, "");
    const marking = marks.get(url.href) ?? markOf(url);
    marks.set(url.href, marking);
    const { text, imports } = await marking;
    found.set(url.href, text);
    await Promise.all(imports.map(follow));
  };
  await Promise.all(start.map(follow));
  return found;
}

async function markOf(url: URL): Promise<Mark> {
  try {
    const { mtime, size, ino } = await Deno.stat(url);
    const source = MODULE.test(url.pathname) ? await Deno.readTextFile(url) : "";
    return { text: `${mtime?.getTime()} ${size} ${ino}`, imports: importsOf(source).map((path) => new URL(path, url)) };
  } catch {
    return { text: "missing", imports: [] };
  }
}

// A text that only looks like an import does no harm: it makes a reload that was not needed.
function importsOf(source: string): string[] {
  return [...source.matchAll(/\b(?:from|import)\s*\(?\s*["'](\.{1,2}\/[^"'\n]+)["']/g)].map(([, path]) => path!);
}

async function filesBelow(folder: URL, recursive: boolean): Promise<URL[]> {
  const files: URL[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (name.startsWith(".") || /(_test|_bench)\.ts$/.test(name)) continue;
    const url = new URL(encodeURIComponent(name), folder);
    if (!isDirectory) files.push(url);
    else if (recursive) files.push(...await filesBelow(new URL(`${url.href}/`), true));
  }
  return files;
}

function isFolder({ url }: FunctionFile): boolean {
  return url.pathname.endsWith("/mod.ts");
}

function pathOf(url: URL): string {
  return decodeURIComponent(url.pathname);
}
