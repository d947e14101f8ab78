// The libraries that the console's folder has are the ones that npm has.
import { assertEquals } from "tensorlet/assert";

const VENDOR = new URL("../../runtime/protocols/console/static/vendor/", import.meta.url);

// Never called: an import that is written down is resolved to the file where Deno keeps it.
export const PACKAGES: readonly (() => Promise<unknown>)[] = [
  () => import("npm:preact@11.2.0"),
  () => import("npm:preact@11.2.0/hooks"),
  () => import("npm:htm@3.1.1"),
  () => import("npm:uplot@1.6.32"),
];

const FILES: Readonly<Record<string, URL>> = {
  "preact.js": new URL("preact.mjs", import.meta.resolve("npm:preact@11.2.0")),
  "preact_hooks.js": new URL("hooks.mjs", import.meta.resolve("npm:preact@11.2.0/hooks")),
  "htm.js": new URL("htm.mjs", import.meta.resolve("npm:htm@3.1.1")),
  "uplot.js": new URL("uPlot.esm.js", import.meta.resolve("npm:uplot@1.6.32")),
  "uplot.css": new URL("uPlot.min.css", import.meta.resolve("npm:uplot@1.6.32")),
};

// What licenses.txt says was changed.
const changed = (text: string) =>
  text.replace(/^\/\/# sourceMappingURL.*\n?/m, "").replace('from"preact"', 'from"./preact.js"').trimEnd();

for (const [name, published] of Object.entries(FILES)) {
  Deno.test(`console: vendor/${name} is what was published`, async () => {
    const own = await Deno.readTextFile(new URL(name, VENDOR));
    assertEquals(own.trimEnd(), changed(await Deno.readTextFile(published)));
  });
}
