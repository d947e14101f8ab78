// The module that a worker or a child process begins with.

/**
 * A `data:` module that hands `source` and the import of `file` (of several files: a list of imports) to `start` of
 * `main`. The imports are literal, so they load with the rights of whoever starts it: a function needs no permission to
 * be read.
 */
export function bootstrapModule(main: string, file: string | readonly string[], source: unknown): string {
  const importer = (url: string) => `() => import(${literal(url)})`;
  const importers = typeof file === "string" ? importer(file) : `[${file.map(importer).join(", ")}]`;
  const text = `import { start } from ${literal(new URL(main, import.meta.url).href)};
start(${literal(source)}, ${importers});`;
  return `data:application/javascript,${encodeURIComponent(text)}`;
}

function literal(value: unknown): string {
  return JSON.stringify(value);
}
