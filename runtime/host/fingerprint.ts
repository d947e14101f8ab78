// What tells a function's files from other ones, without reading them.
import type { Fingerprints } from "./control.ts";
import { findFunctions, folderUrl, type FunctionFile } from "./loader.ts";

/** Of every function in a folder, its versions taken together. Empty where the folder cannot be read. */
export async function fingerprintsOf(dir: string): Promise<Fingerprints> {
  try {
    const files = await findFunctions(folderUrl(dir));
    const parts = await Promise.all(files.map(async (file) => [file.name, await fingerprint(file)] as const));
    const byName = Map.groupBy(parts, ([name]) => name);
    return Object.fromEntries([...byName].map(([name, parts]) => [name, parts.map(([, text]) => text).join(" ")]));
  } catch {
    return {};
  }
}

async function fingerprint({ url }: FunctionFile): Promise<string> {
  if (!url.pathname.endsWith("/mod.ts")) return await stamp(url);
  // Its helpers and assets are part of it.
  const folder = new URL("./", url);
  const names = (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name).sort();
  return (await Promise.all(names.map((name) => stamp(new URL(encodeURIComponent(name), folder))))).join(",");
}

async function stamp(url: URL): Promise<string> {
  try {
    const { mtime, size } = await Deno.stat(url);
    return `${mtime?.getTime()}:${size}`;
  } catch {
    return "gone";
  }
}
