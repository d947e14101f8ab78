// The public API is the one that was agreed on, and mod.ts stays light enough for workers without permissions.
import { apiSurface, golden, printDoc } from "../.ci/api_surface.ts";
import { readGraph } from "../.ci/layers.ts";
import { assertEquals, assertGreater, assertStringIncludes, assertThrows } from "tensorlet/assert";

const ROOT = new URL("../", import.meta.url);

Deno.test("the public API is the golden one", async () => {
  assertEquals(
    (await apiSurface()).split("\n"),
    (await golden()).split("\n"),
    "The public API differs from .ci/api_surface.txt; if that is meant: deno task api --update",
  );
});

Deno.test("the API is printed with optional parameters and parents, and nothing unknown is left out", () => {
  const doc = (declaration: unknown) => ({
    version: 2,
    nodes: Object.fromEntries(
      ["mod.ts", "runtime/client.ts", "runtime/testing.ts"].map((
        path,
      ) => [path, { symbols: [{ name: "a", declarations: [declaration] }] }]),
    ),
  });
  const print = (declaration: unknown) => printDoc(doc(declaration) as Parameters<typeof printDoc>[0], (path) => path);
  const string = { kind: "keyword", value: "string" };
  const left = { kind: "identifier", name: "b", tsType: string };
  const def = { params: [{ kind: "assign", left }], returnType: string };
  assertStringIncludes(print({ kind: "function", declarationKind: "export", def }), "function a(b?: string): string\n");
  const child = { extends: "Error", properties: [{ name: "c", readonly: true, tsType: string }] };
  assertStringIncludes(
    print({ kind: "class", declarationKind: "export", def: child }),
    "class a extends Error\n  readonly c: string\n",
  );
  const unknown = { tsType: { kind: "new kind" } };
  assertThrows(() => print({ kind: "typeAlias", declarationKind: "export", def: unknown }), Error, "new kind");
});

Deno.test("deno.json exports the three entries whose API is compared", async () => {
  const { exports } = JSON.parse(await Deno.readTextFile(new URL("deno.json", ROOT)));
  assertEquals(exports, {
    ".": "./mod.ts",
    "./client": "./runtime/client.ts",
    "./testing": "./runtime/testing.ts",
  });
});

Deno.test("mod.ts reaches nothing but runtime/core by static imports", async () => {
  const { imports } = await readGraph(ROOT);
  const reached = new Set(["mod.ts"]);
  // A set takes what is added while it is walked.
  for (const module of reached) {
    for (const { from, to, kind } of imports) {
      if (from === module && kind === "static") reached.add(to);
    }
  }
  reached.delete("mod.ts");
  assertGreater(reached.size, 3);
  assertEquals([...reached].filter((path) => !path.startsWith("runtime/core/")), []);
});

// Runs a module in a worker that may do nothing; resolves to what it posts.
async function inWorker(source: string): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const worker = new Worker(`data:text/javascript,${encodeURIComponent(source)}`, {
    type: "module",
    deno: { permissions: "none" },
  });
  worker.onmessage = ({ data }) => resolve(data);
  worker.onerror = (event) => {
    event.preventDefault();
    resolve(`failed: ${event.message}`);
  };
  try {
    return await promise;
  } finally {
    worker.terminate();
  }
}

Deno.test("mod.ts works in a worker without permissions", async () => {
  const source = `
    import { defineModel } from ${JSON.stringify(new URL("mod.ts", ROOT).href)};
    const model = defineModel({ input: { dtype: "float32" }, predict: (x) => x });
    const { state } = await Deno.permissions.query({ name: "env" });
    self.postMessage([typeof model, state === "granted"]);
  `;
  assertEquals(await inWorker(source), ["object", false]);
});

Deno.test("what mod.ts must not reach does not start in such a worker", async () => {
  const server = JSON.stringify(new URL("runtime/transports/grpc/server.ts", ROOT).href);
  const message = await inWorker(`
    await import(${server}).then(() => self.postMessage("started"), (error) => self.postMessage(error.name));
  `);
  assertEquals(message, "NotCapable");
});
