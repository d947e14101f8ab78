// The module that a worker or a child process begins with.

/** A `data:` module that calls `start(source)` of `main`, which is found beside this file. */
export function bootstrapModule(main: string, source: unknown): string {
  const url = new URL(main, import.meta.url).href;
  const text = `import { start } from ${JSON.stringify(url)};\nstart(${JSON.stringify(source)});`;
  return `data:application/javascript,${encodeURIComponent(text)}`;
}
