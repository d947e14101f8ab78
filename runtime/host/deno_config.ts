// Which deno.json resolves what a function imports.

/**
 * The nearest deno.json at or above a folder that says where Tensorlet is: the project of whose functions they are.
 * Undefined where there is none.
 */
export function projectConfig(folder: URL): string | undefined {
  for (let url = new URL("./", folder);; url = new URL("../", url)) {
    for (const name of ["deno.json", "deno.jsonc"]) {
      const path = decodeURIComponent(new URL(name, url).pathname);
      if (namesTensorlet(path)) return path;
    }
    if (url.pathname === "/") return undefined;
  }
}

function namesTensorlet(path: string): boolean {
  try {
    return /"tensorlet"\s*:/.test(Deno.readTextFileSync(path));
  } catch {
    return false; // there is no such file, or it is not to be read
  }
}
