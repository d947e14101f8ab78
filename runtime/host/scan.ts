// What is in a folder of functions right now: the files, what the host decided of each, and what tells that it changed.
import { findFunctions, type FunctionFile } from "./loader.ts";
import { type FunctionSettings, type Isolation, readManifest } from "./manifest.ts";

/** A function's file, and what the host decided of it. */
export interface FoundFunction extends FunctionFile {
  /** For people. */
  readonly path: string;
  readonly settings: FunctionSettings;
  /** Paths that the function may read without being granted it. */
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
    const assets = isFolder(file) ? [new URL(".", file.url)] : own;
    return {
      ...file,
      path: pathOf(file.url),
      settings,
      assets: assets.map((url) => pathOf(url).replace(/\/$/, "")),
      fingerprint: JSON.stringify([settings, await marksOf(own, marks)]),
    };
  }));
}

/** What tells that a file changed, and what it imports. */
interface Mark {
  readonly text: string;
  readonly imports: readonly URL[];
}

// The marks of files and of everything that they import by a relative path, by URL.
async function marksOf(start: readonly URL[], marks: Map<string, Promise<Mark>>): Promise<string[]> {
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
  return [...found].map(([href, text]) => `${href} ${text}`).sort();
}

async function markOf(url: URL): Promise<Mark> {
  try {
    const { mtime, size, ino } = await Deno.stat(url);
    const source = /\.[cm]?[jt]sx?$/.test(url.pathname) ? await Deno.readTextFile(url) : "";
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
