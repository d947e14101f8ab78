// The client as one file, on Node. It ends by itself: nothing of it keeps the process.
import { defineModel, mapNumeric } from "tensorlet";
import { assert, assertEquals } from "tensorlet/assert";
import { startProxy } from "../harness/cutting_proxy.ts";
import { serveModels } from "../harness/grpc_client.ts";

const ROOT = new URL("../../", import.meta.url);
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

const MODELS = {
  affine: defineModel({
    input: { dtype: "any" },
    predict: (x) => mapNumeric(x, (v) => v * 2 + 10, (v) => v * 2n + 10n),
  }),
  words: defineModel({
    async *stream(_inputs, ctx) {
      for (let i = 0; i < (ctx.maxTokens ?? 5); i++) yield `w${i} `;
    },
  }),
  sum: defineModel({
    input: { dtype: "float32" },
    output: { dtype: "float32", shape: [1] },
    predict: (x) => Float32Array.of(x.data.reduce((sum, v) => sum + v, 0)),
  }),
  stuck: defineModel({
    input: { dtype: "float32" },
    batching: { maxSize: 1 },
    async batch(items, ctx) {
      await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
      return items.map(({ input }) => input);
    },
  }),
  parrot: defineModel({
    async *chat(message, ctx) {
      yield `${ctx.session.turn + 1}: ${message.content}`;
    },
  }),
};

async function nodeVersion(): Promise<number> {
  try {
    const { stdout } = await new Deno.Command("node", { args: ["--version"] }).output();
    return Number(/^v(\d+)/.exec(decode(stdout))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

Deno.test({
  name: "client: as one file it works on Node",
  ignore: await nodeVersion() < 20,
  async fn() {
    const folder = await Deno.makeTempDir();
    try {
      const bundle = `${folder}/client.mjs`;
      const build = await new Deno.Command(Deno.execPath(), {
        args: ["bundle", "--quiet", "--platform=deno", "-o", bundle, "runtime/client.ts"],
        cwd: ROOT,
      }).output();
      assert(build.success, decode(build.stderr));
      assert(!/\bDeno\./.test(await Deno.readTextFile(bundle)), "the bundle uses Deno's namespace");
      await using served = await serveModels(MODELS);
      await using proxy = startProxy({ target: served.address, cut: (n) => n === 0 ? { afterMessages: 20 } : {} });
      const script = new URL("./testdata/node_client.mjs", import.meta.url).pathname;
      const { code, success, stdout, stderr } = await new Deno.Command("node", {
        args: [script, bundle, served.address, proxy.address],
      }).output();
      assert(success, decode(stderr) || `status ${code}`);
      assertEquals(JSON.parse(decode(stdout)), {
        runtime: "node",
        predict: `int64 ${2n ** 61n + 10n}`,
        error: [true, "invalid_argument"],
        stream: [Array.from({ length: 50 }, (_, i) => `w${i} `).join(""), 50, true],
        batch: [2000, true, 0],
        stuck: ["deadline_exceeded", true],
        chat: ["1: hello", "2: again"],
      });
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});
