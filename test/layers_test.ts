// The import table holds, and the check of it can fail.
import { checkGraph, type Graph, type ImportKind, readGraph } from "../.ci/layers.ts";
import plugin from "../.ci/lint_plugin.ts";
import { assertEquals, assertGreater, assertMatch } from "tensorlet/assert";

const ROOT = new URL("../", import.meta.url);

Deno.test("every module imports only what the table allows", async () => {
  const graph = await readGraph(ROOT);
  assertGreater(graph.imports.length, 100, "deno info found next to nothing");
  assertEquals(checkGraph(graph), []);
});

function graphOf(imports: readonly (readonly [from: string, to: string, kind?: ImportKind])[]): Graph {
  return { files: new Map(), imports: imports.map(([from, to, kind = "static"]) => ({ from, to, kind, line: 1 })) };
}

const ALLOWED: readonly (readonly [string, string, ImportKind?])[] = [
  ["mod.ts", "runtime/core/define.ts"],
  ["mod.ts", "runtime/host/serve.ts", "dynamic"],
  ["mod.ts", "runtime/host/serve.ts", "type"],
  ["runtime/testing.ts", "runtime/protocols/mod.ts", "dynamic"],
  ["runtime/testing.ts", "runtime/protocols/adapter.ts", "type"],
  ["runtime/protocols/mod.ts", "runtime/protocols/inference/adapter.ts"],
  ["runtime/protocols/inference/adapter.ts", "runtime/protocols/inference/tensor.ts"],
  ["runtime/protocols/inference/adapter.ts", "runtime/protocols/codec.ts"],
  ["runtime/protocols/codec.ts", "npm:@grpc/proto-loader"],
  ["runtime/transports/grpc/server.ts", "npm:@grpc/grpc-js"],
  ["runtime/transports/memory.ts", "runtime/transports/run_method.ts"],
  ["runtime/host/serve.ts", "runtime/transports/grpc/server.ts"],
  ["functions/digits/network.ts", "npm:onnxruntime-node"],
  ["functions/affine_test.ts", "test/assert.ts"],
  ["examples/story/client.ts", "mod.ts"],
];

const REFUSED: readonly (readonly [string, string, ImportKind?])[] = [
  ["runtime/core/define.ts", "runtime/middleware/chain.ts", "type"],
  ["runtime/core/define.ts", "node:buffer"],
  ["runtime/core/define.ts", "npm:commander", "dynamic"],
  ["runtime/middleware/chain.ts", "runtime/protocols/adapter.ts", "type"],
  ["runtime/assembly.ts", "runtime/protocols/mod.ts", "dynamic"],
  ["runtime/testing.ts", "runtime/protocols/mod.ts"],
  ["runtime/testing.ts", "runtime/host/serve.ts", "dynamic"],
  ["runtime/testing.ts", "runtime/transports/grpc/server.ts", "type"],
  ["runtime/protocols/inference/adapter.ts", "runtime/protocols/health/adapter.ts", "type"],
  ["runtime/protocols/inference/adapter.ts", "runtime/transports/run_method.ts"],
  ["runtime/protocols/latency.ts", "npm:@grpc/proto-loader"],
  ["runtime/protocols/latency.ts", "runtime/protocols/health/adapter.ts"],
  ["runtime/transports/grpc/server.ts", "runtime/protocols/mod.ts"],
  ["runtime/transports/memory.ts", "npm:@grpc/grpc-js"],
  ["runtime/transports/memory.ts", "runtime/transports/grpc/server.ts", "type"],
  ["runtime/host/serve.ts", "npm:commander"],
  ["runtime/host/serve.ts", "functions/affine.ts"],
  ["runtime/host/serve.ts", "test/assert.ts"],
  ["runtime/host/serve.ts", "runtime/host/serve_test.ts"],
  ["mod.ts", "runtime/host/serve.ts"],
  ["mod.ts", "runtime/transports/grpc/server.ts", "dynamic"],
  ["functions/affine.ts", "runtime/core/define.ts", "type"],
  ["functions/affine.ts", "runtime/testing.ts"],
  ["examples/story/client.ts", "examples/other/model.ts"],
  ["elsewhere/module.ts", "mod.ts"],
];

for (const edge of ALLOWED) {
  Deno.test(`the table lets ${edge[0]} import ${edge[1]} (${edge[2] ?? "static"})`, () => {
    assertEquals(checkGraph(graphOf([edge]), undefined, {}), []);
  });
}

for (const edge of REFUSED) {
  Deno.test(`the table does not let ${edge[0]} import ${edge[1]} (${edge[2] ?? "static"})`, () => {
    assertGreater(checkGraph(graphOf([edge]), undefined, {}).length, 0);
  });
}

Deno.test("a cycle is found, of types too", () => {
  const core = (name: string) => `runtime/core/${name}.ts`;
  const problems = checkGraph(
    graphOf([[core("a"), core("b")], [core("b"), core("c"), "type"], [core("c"), core("a")], [core("d"), core("a")]]),
    undefined,
    {},
  );
  assertEquals(problems, [
    "import cycle: runtime/core/a.ts -> runtime/core/b.ts -> runtime/core/c.ts -> runtime/core/a.ts",
  ]);
});

Deno.test("long files, index.ts and stale exemptions are found", () => {
  const files = new Map([["a.ts", 501], ["b.ts", 501], ["c.ts", 500], ["d/index.ts", 1]]);
  const problems = checkGraph({ files, imports: [] }, undefined, { "b.ts": "a table", "c.ts": "no longer" });
  assertEquals(problems.map((problem) => problem.split(":")[0]), ["a.ts", "d/index.ts", "c.ts"]);
});

const LINTED: readonly (readonly [file: string, source: string, rule: string | undefined])[] = [
  ["runtime/core/a.ts", "Deno.cwd();", "pure-core"],
  ["runtime/core/a.ts", "globalThis.Deno.cwd();", "pure-core"],
  ["runtime/core/a.ts", "globalThis['Deno'].cwd();", "pure-core"],
  ["runtime/core/a.ts", "console.log(1);", "pure-core"],
  ["runtime/core/a.ts", "// console.log\nconst text = 'Deno';", undefined],
  ["runtime/core/a_test.ts", "Deno.test('x', () => {});", undefined],
  ["runtime/host/a.ts", "Deno.cwd();", undefined],
  ["runtime/host/a.ts", "export default 1;", "default-export"],
  ["runtime/host/a.ts", "const a = 1; export { a as default };", "default-export"],
  ["functions/a.ts", "export default 1;", undefined],
  ["examples/story/model.ts", "export default 1;", undefined],
  ["examples/story/client.ts", "export default 1;", "default-export"],
  ["test/testdata/functions/a.ts", "export default 1;", undefined],
  ["mod.ts", "export * from './runtime/core/a.ts';", "named-reexports"],
  ["mod.ts", "export { a } from './runtime/core/a.ts';", undefined],
  ["runtime/host/serve.ts", "await import(name);", "computed-import"],
  ["runtime/host/serve.ts", "await import('./cli.ts');", undefined],
  ["runtime/host/loader.ts", "await import(name);", undefined],
];

for (const [file, source, rule] of LINTED) {
  Deno.test(`deno lint ${rule ? `refuses (${rule})` : "accepts"} in ${file}: ${JSON.stringify(source)}`, () => {
    const found = Deno.lint.runPlugin(plugin, decodeURIComponent(new URL(file, ROOT).pathname), source);
    assertEquals([...new Set(found.map(({ id }) => id))], rule ? [`tensorlet/${rule}`] : []);
    for (const { message } of found) assertMatch(message, /^[A-Za-z].*[^.]$/);
  });
}

Deno.test("deno lint runs the plugin", async () => {
  const config = JSON.parse(await Deno.readTextFile(new URL("deno.json", ROOT)));
  assertEquals(config.lint.plugins, ["./.ci/lint_plugin.ts"]);
});
