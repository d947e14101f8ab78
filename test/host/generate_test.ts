// `generate`: its modules pass a project's checks, refuse wrong use, and call a real server.
import { assertEquals, assertMatch, assertStringIncludes } from "tensorlet/assert";
import denoConfig from "../../deno.json" with { type: "json" };
import { DTYPES } from "../../runtime/core/dtype.ts";
import { createLogger } from "../../runtime/core/log.ts";
import { generateModule } from "../../runtime/generate/module.ts";
import { describeFunctions } from "../../runtime/host/launch.ts";
import { folderUrl } from "../../runtime/host/loader.ts";
import { denoJson } from "../../runtime/host/project.ts";
import { scanFolder } from "../../runtime/host/scan.ts";
import { deno, succeeds } from "../harness/command.ts";
import { DenoProcess, functionFolder, FUNCTIONS, MAIN, portOf, ROOT } from "../harness/server_process.ts";

const every = Object.fromEntries(DTYPES.map((dtype) => [`of_${dtype}`, { dtype, optional: true, shape: [-1] }]));

/** Functions that are hard to write down. */
const AWKWARD: Readonly<Record<string, string>> = {
  odd: `defineModel({
    description: "Ends */ here,\\n and goes \`on\` \${there}\u2028",
    input: {
      "a-b": { dtype: "any", description: "The first */ of them" },
      "x.y": { dtype: "int64", shape: [-1, 2], optional: true },
      class: { dtype: "string", optional: true },
    },
    output: { "a-b": { dtype: "any" }, "given/1": { dtype: "string", shape: [-1] } },
    params: {
      "top-k": { type: "integer", min: 1, max: 10, default: 3, description: "How many" },
      mode: { type: "string", enum: ["a", 'b"c'], default: "a" },
      flag: { type: "boolean" },
      ratio: { type: "number", min: -Infinity, max: 0.5 },
    },
    predict: ({ "a-b": x, ...others }, { params }) =>
      ({ "a-b": x, "given/1": [...Object.keys(others), params.mode, \`\${params["top-k"]}\`] }),
  })`,
  "3d-net_2": "defineModel({ predict: ([x]) => x! })",
  nothing: 'defineModel({ input: {}, output: { dtype: "string", shape: [1] }, params: {}, predict: () => ["none"] })',
  every: `defineModel({ input: ${JSON.stringify(every)}, output: ${JSON.stringify(every)}, predict: (x) => x })`,
  options: 'defineModel({ params: { tensorlet: { type: "boolean" } }, async *chat({ content }) { yield content; } })',
  modes: `defineModel({
    input: { dtype: "float32", shape: [2] },
    output: { dtype: "float32", shape: [2] },
    params: { word: { type: "string", default: "w" } },
    predict: (x) => x.data.map((v) => v * 2),
    async *stream(x, { params }) { yield params.word; yield \`\${x.data.length}\`; },
    async *chat({ content }, { params }) { yield params.word; yield content; },
  })`,
};

/** A project as `init` makes it, without a file. */
async function emptyProject(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await Deno.makeTempDir();
  const config = { ...denoJson(new URL(`file://${ROOT}`), denoConfig), fmt: {} };
  await Deno.writeTextFile(`${path}/deno.json`, JSON.stringify(config, null, 2) + "\n");
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

Deno.test("generate: what it writes of every function passes a project's checks", async () => {
  await using project = await emptyProject();
  await using awkward = await functionFolder(AWKWARD);
  let count = 0;
  for (const dir of [`${ROOT}functions`, FUNCTIONS, awkward.path]) {
    const found = await scanFolder(folderUrl(dir));
    const options = { log: createLogger(() => {}), onStuck: () => {}, reloads: 0 };
    for (const [{ name }, result] of await describeFunctions(found, options)) {
      if (result.status === "rejected") continue; // meant to be broken
      const text = generateModule(result.value, name, "127.0.0.1:50051");
      await Deno.writeTextFile(`${project.path}/${name}_${count++}.ts`, text);
    }
  }
  assertEquals(count > 25, true);
  await succeeds(project.path, "fmt");
  await succeeds(project.path, "fmt", "--check");
  await succeeds(project.path, "lint");
  await succeeds(project.path, "lint", "--rules-tags=recommended,jsr");
  await succeeds(project.path, "check");
});

const USE = `
import assert from "node:assert/strict";
import { tensor } from "tensorlet/client";
import { EveryClient } from "./every.ts";
import { Model3dNet2Client } from "./3d-net_2.ts";
import { ModesClient } from "./modes.ts";
import { NothingClient } from "./nothing.ts";
import { OddClient, type OddInput } from "./odd.ts";
import { OptionsClient } from "./options.ts";

const [address] = Deno.args;
const x = tensor("int8", [1, 2]);

await using odd = new OddClient(address);
const { output } = await odd.predict({ "a-b": x, class: ["c"] }, { params: { mode: 'b"c', "top-k": 4 } });
assert.deepEqual(output["a-b"], x);
const given: string[] = output["given/1"].data;
assert.deepEqual(given, ["class", 'b"c', "4"]);
await odd.predict({ "a-b": x, "x.y": BigInt64Array.of(1n, 2n) });

await using every = new EveryClient(address);
assert.deepEqual((await every.predict()).output, {});
const halves = await every.predict({ of_bool: Uint8Array.of(1), of_float16: Float16Array.of(0.5) });
assert.deepEqual(halves.outputs.map(({ dtype }) => dtype), ["bool", "float16"]);

await using bare = new Model3dNet2Client(address);
assert.deepEqual((await bare.predict(x)).output, x);

await using nothing = new NothingClient(address);
const none: string[] = (await nothing.predict()).output.data;
assert.deepEqual(none, ["none"]);

await using modes = new ModesClient(address);
const y: Float32Array = (await modes.predict(Float32Array.of(1, 2))).output.data;
assert.deepEqual([...y], [2, 4]);
const params = { word: "hi" };
assert.deepEqual(await Array.fromAsync(modes.stream([1, 2], { params, maxTokens: 5 })), ["hi", "2"]);
assert.deepEqual((await modes.batch([[1, 2], [3, 4]])).results.map(({ output }) => [...output]), [[2, 4], [6, 8]]);
await using chat = modes.chat({ params });
assert.deepEqual(await Array.fromAsync(chat.send("there")), ["hi", "there"]);

await using options = new OptionsClient(address, { retry: { retries: 0 } });
await using talk = options.chat({ params: { tensorlet: true } });
assert.deepEqual(await Array.fromAsync(talk.send("said")), ["said"]);

// Only to be checked.
export async function wrong(input: OddInput): Promise<void> {
  // @ts-expect-error "a-b" has to be there
  await odd.predict({ class: ["c"] });
  // @ts-expect-error "x.y" is int64
  await odd.predict({ ...input, "x.y": Float32Array.of(1, 2) });
  // @ts-expect-error there is no such mode
  await odd.predict(input, { params: { mode: "c" } });
  // @ts-expect-error "top-k" is a number
  await odd.predict(input, { params: { "top-k": "4" } });
  // @ts-expect-error there is no such param
  await odd.predict(input, { params: { top_k: 4 } });
  // @ts-expect-error it takes no params
  await nothing.predict({ params: { word: "hi" } });
  // @ts-expect-error it takes nothing, so no vectors
  nothing.batch([[1]]);
  // @ts-expect-error it answers no chat
  odd.chat();
  // @ts-expect-error the answer is float32
  const _text: string[] = (await modes.predict(Float32Array.of(1, 2))).output.data;
}
`;

Deno.test("generate: what it prints calls the server that it asked", async () => {
  await using project = await emptyProject();
  await using folder = await functionFolder(AWKWARD);
  await using server = new DenoProcess([...MAIN, folder.path, "--port", "0"]);
  const port = await portOf(server);
  for (const name of Object.keys(AWKWARD)) {
    const module = await succeeds(project.path, ...MAIN, "generate", name, "--port", `${port}`);
    assertStringIncludes(module, `address: string = "127.0.0.1:${port}"`);
    await Deno.writeTextFile(`${project.path}/${name}.ts`, module);
  }
  await succeeds(project.path, "fmt", "--check"); // as it was printed
  await Deno.writeTextFile(`${project.path}/use.ts`, USE);
  await succeeds(project.path, "check");
  await succeeds(project.path, "run", "-A", "use.ts", `127.0.0.1:${port}`);

  const unknown = await deno(project.path, ...MAIN, "generate", "mode", "--port", `${port}`);
  assertEquals([unknown.code, unknown.stdout], [2, ""]);
  assertMatch(unknown.stderr, /^error: There is no model "mode"; the nearest names are "modes", "odd"\n$/);
});

Deno.test("generate: reads a folder, and the newest version where none is named", async () => {
  const run = (...args: readonly string[]) => deno(ROOT, ...MAIN, "generate", ...args, "--functions", FUNCTIONS);
  assertStringIncludes((await run("versioned")).stdout, "Calls the function `versioned`, version 2.");
  const first = (await run("versioned@1")).stdout;
  assertStringIncludes(first, "version 1.");
  assertStringIncludes(first, 'model: "versioned@1"');
  const { code, stderr } = await run("versioned@3");
  assertEquals([code, stderr], [2, 'error: Model "versioned" has no version "3", only "2", "1"\n']);
});

Deno.test("generate: status 1 for a function that cannot be loaded", async () => {
  await using folder = await functionFolder({ broken: "1" });
  const { code, stdout, stderr } = await deno(ROOT, ...MAIN, "generate", "broken", "--functions", folder.path);
  assertEquals([code, stdout], [1, ""]);
  assertEquals(stderr, 'error: Function "broken" cannot be loaded, so nobody knows what it takes\n');
});

Deno.test("generate: one line and status 2 where there is nobody to ask, or nothing to ask for", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  for (
    const [args, text] of [
      [["affine", "--port", `${port}`], `No server of yours runs on port ${port}; --functions reads a folder instead`],
      [["affine", "--functions", "no/such/folder"], "there is no such folder"],
      [[], "missing required argument 'model'"],
      [["affine", "--prt", "1"], "Did you mean --port?"],
    ] as const
  ) {
    const { code, stdout, stderr } = await deno(ROOT, ...MAIN, "generate", ...args);
    assertEquals([code, stdout, stderr.trimEnd().split("\n").length], [2, "", 1], stderr);
    assertStringIncludes(stderr, text);
  }
});
