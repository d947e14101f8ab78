// A folder of functions that changes while it is served, in real workers over real sockets.
import { assert, assertEquals, assertStringIncludes } from "tensorlet/assert";
import { answer, collect, metadata, type Served } from "../harness/grpc_client.ts";
import { serveFolder } from "../harness/served_folder.ts";

// Answers every kind of call with `word`.
const saying = (word: string, more = "") => `
import { defineModel } from "tensorlet";
export default defineModel({
  ${more}
  async *stream(_inputs, ctx) {
    for (let i = 0; i < (ctx.maxTokens ?? 1); i++) yield ${JSON.stringify(word)};
  },
  async *chat(message, ctx) {
    yield ${JSON.stringify(word)} + ctx.session.turn;
  },
});
`;

const stream = (v1: Served["v1"], model_id: string, max_tokens = 1) => v1.StreamPredict({ model_id, max_tokens });

async function said({ v1 }: Served, model = "bot"): Promise<string> {
  const chunks = await collect<{ token: string }>(stream(v1, model));
  return chunks.map(({ token }) => token).join("");
}

const codeOf = (error: unknown) => (error as { code: number }).code;

async function failure(action: Promise<unknown>): Promise<{ readonly code: number; readonly message: string }> {
  try {
    await action;
  } catch (error) {
    return { code: codeOf(error), message: (error as Error).message };
  }
  throw new Error("It did not fail");
}

Deno.test("reload() serves the new version of a changed file, and only of that", async () => {
  await using served = await serveFolder({ "bot.ts": saying("old"), "other.ts": saying("other") });
  assertEquals(await said(served), "old");
  await served.write({ "bot.ts": saying("new") });
  await served.server.reload();
  assertEquals(await said(served), "new");
  const revisions = served.server.status().map(({ name, revision }) => [name, revision]);
  assertEquals(revisions, [["bot", 3], ["other", 2]]);
});

Deno.test("reload() leaves a call in progress on the version on which it began", async () => {
  await using served = await serveFolder({ "bot.ts": saying("old") });
  const call = stream(served.v1, "bot", 20_000)[Symbol.asyncIterator]();
  assertEquals((await call.next()).value.token, "old");
  await served.write({ "bot.ts": saying("new") });
  await served.server.reload();
  assertEquals(await said(served), "new");
  let tokens = 1;
  for (let next = await call.next(); !next.done; next = await call.next()) {
    assertEquals(next.value.token, "old");
    tokens++;
  }
  assertEquals(tokens, 20_000);
});

Deno.test("reload() leaves a chat session on the version on which it began", async () => {
  await using served = await serveFolder({ "bot.ts": saying("old", "session: { init: () => 0 },") });
  const talk = (session_id: string, model = "bot") => {
    const call = served.v1.ChatStream(metadata({ "model-id": model }));
    const pieces = call[Symbol.asyncIterator]();
    const say = async () => {
      call.write({ session_id, content: "x" });
      let text = "";
      for (;;) {
        const { value } = await pieces.next();
        text += value.content;
        if (value.finish_reason) return text;
      }
    };
    return { say, end: () => (call.end(), pieces.next()) };
  };
  const before = talk("s");
  assertEquals(await before.say(), "old0");
  await served.write({ "bot.ts": saying("new", "session: { init: () => 0 },") });
  await served.server.reload();
  const after = talk("t");
  assertEquals([await before.say(), await after.say()], ["old1", "new0"]);
  await before.end();
  const again = talk("s"); // its stream has gone, its session has not
  assertEquals(await again.say(), "old2");
  await Promise.all([after.end(), again.end()]);
});

Deno.test("reload() keeps what works when the new file is broken, and says so", async () => {
  for (
    const [broken, why] of [
      ["export default {;", "Unexpected token"],
      ["export default 5;", "its default export is not what defineModel({...}) returns"],
      [saying("new", 'load() { throw new Error("no weights"); },'), "no weights"],
      ['throw new Error("at import");', "at import"],
    ] as const
  ) {
    await using served = await serveFolder({ "bot.ts": saying("old") });
    assertEquals(await said(served), "old");
    await served.write({ "bot.ts": broken });
    await served.server.reload();
    assertEquals(await said(served), "old");
    const errors = served.logs.filter(({ level }) => level === "error");
    assert(errors.some(({ message }) => message.includes("bot.ts: what was served stays")), Deno.inspect(errors));
    assertStringIncludes(errors.map(({ fields }) => `${fields.cause}`).join("\n"), why);
    await served.write({ "bot.ts": saying("mended") });
    await served.server.reload();
    assertEquals(await said(served), "mended");
  }
});

Deno.test("reload() adds and removes functions", async () => {
  await using served = await serveFolder({ "bot.ts": saying("bot") });
  await served.write({ "second.ts": saying("second"), "third/mod.ts": saying("third") });
  await served.remove("bot.ts");
  await served.server.reload();
  assertEquals([await said(served, "second"), await said(served, "third")], ["second", "third"]);
  assertEquals((await failure(said(served, "bot"))).code, 5);
});

Deno.test("reload() finds the functions that import a file that changed", async () => {
  const importing = 'import { word } from "./_lib/word.ts";\n' + saying("").replaceAll('""', "word");
  await using served = await serveFolder({
    "bot.ts": importing,
    "other.ts": saying("other"),
    "_lib/word.ts": 'export { word } from "./deep.ts";',
    "_lib/deep.ts": 'export const word: string = "old";',
  });
  assertEquals(await said(served), "old");
  await served.write({ "_lib/deep.ts": 'export const word: string = "new";' });
  await served.server.reload();
  assertEquals(await said(served), "new");
  assertEquals(served.server.status().map(({ revision }) => revision), [3, 2]);
});

Deno.test("reload() reads functions.json again; one that cannot be meant changes nothing", async () => {
  await using served = await serveFolder({ "bot.ts": saying("bot") });
  const levels = () => served.server.status().map(({ isolation, maxInstances }) => [isolation, maxInstances]);
  assertEquals(levels(), [["worker", 1]]);
  await served.write({ "functions.json": '{ "bot": { "isolation": "inline", "instances": { "max": 1 } } }' });
  await served.server.reload();
  assertEquals(levels(), [["inline", 1]]);
  await served.write({ "functions.json": '{ "bto": {} }' });
  await served.server.reload();
  assertEquals([levels(), await said(served)], [[["inline", 1]], "bot"]);
  const error = served.logs.findLast(({ level }) => level === "error")!;
  assertStringIncludes(`${error.fields.cause}`, 'did you mean "bot"?');
});

Deno.test("reload() fails no call of those that come all the time, in all four modes", async () => {
  const all = (word: string) =>
    saying(word, 'predict: ([x]) => x ?? { dtype: "float32", shape: [0], data: new Float32Array() },');
  await using served = await serveFolder({ "bot.ts": all("0") });
  let over = false;
  let calls = 0;
  const seen = new Set<string>();
  const { v1 } = served;
  const modes = [
    async () => void seen.add(await said(served)),
    async () => {
      const { output_tensor } = await answer<{ output_tensor: number[] }>((done) =>
        v1.Predict({ model_id: "bot", input_tensor: [5] }, done)
      );
      assertEquals(output_tensor, [5]);
    },
    async () => {
      const batch = answer<{ total_processed: number }>((done) => {
        const call = v1.BatchPredict(metadata({ "model-id": "bot" }), done);
        for (let i = 0; i < 40; i++) call.write({ features: [i] });
        call.end();
      });
      assertEquals((await batch).total_processed, 40);
    },
    async () => {
      const call = v1.ChatStream(metadata({ "model-id": "bot" }));
      for (let i = 0; i < 3; i++) call.write({ session_id: `s${calls}`, content: "x" });
      call.end();
      assertEquals((await collect(call)).length, 3);
    },
  ];
  const load = async (call: () => Promise<void>) => {
    while (!over) {
      await call();
      calls++;
    }
  };
  const clients = [...modes, ...modes].map(load);
  for (let i = 1; i <= 10; i++) {
    await served.write({ "bot.ts": all(`${i}`) });
    await served.server.reload();
    assertEquals(await said(served), `${i}`);
  }
  over = true;
  await Promise.all(clients);
  assertEquals([...seen].sort((a, b) => Number(a) - Number(b)).at(-1), "10");
  assert(calls > 10);
});

Deno.test("two versions are called by name@version, and share other calls by weight", async () => {
  await using served = await serveFolder({
    "bot@1.ts": saying("one"),
    "bot@2.ts": saying("two"),
    "functions.json": '{ "bot": { "weights": { "1": 1, "2": 1 } } }',
  });
  assertEquals([await said(served, "bot@1"), await said(served, "bot@2")], ["one", "two"]);
  const words = await Promise.all(Array.from({ length: 64 }, () => said(served)));
  assertEquals(new Set(words), new Set(["one", "two"])); // by chance all alike once in 2^63 runs
  await served.write({ "functions.json": '{ "bot": { "weights": { "1": 1, "2": 0 } } }' });
  await served.server.reload();
  assertEquals(new Set(await Promise.all(Array.from({ length: 16 }, () => said(served)))), new Set(["one"]));
});

Deno.test("reload() refuses a second file of one name and version, and goes on reloading", async () => {
  await using served = await serveFolder({ "bot.ts": saying("bot"), "other.ts": saying("other") });
  assertEquals([await said(served), await said(served, "other")], ["bot", "other"]);
  await served.write({ "other.ts": saying("thief", 'name: "bot",') });
  await served.server.reload();
  assertEquals([await said(served), await said(served, "other")], ["bot", "other"]);
  const { fields } = served.logs.findLast(({ level }) => level === "error")!;
  assertStringIncludes(`${fields.cause}`, 'Cannot register function "bot" version "1"');
  await served.write({ "other.ts": saying("mended") });
  await served.server.reload();
  assertEquals([await said(served), await said(served, "other")], ["bot", "mended"]);
});

Deno.test("reload() renames a function whose definition has another name", async () => {
  await using served = await serveFolder({ "bot.ts": saying("bot") });
  await served.write({ "bot.ts": saying("renamed", 'name: "robot", version: "7",') });
  await served.server.reload();
  assertEquals(await said(served, "robot@7"), "renamed");
  assertEquals((await failure(said(served))).code, 5);
  assertEquals(served.server.status().map(({ name, version }) => `${name}@${version}`), ["robot@7"]);
});

Deno.test("weights of a version that there is not are refused", async () => {
  const files = { "bot.ts": saying("one"), "functions.json": '{ "bot": { "weights": { "9": 1 } } }' };
  const error = await serveFolder(files).then(() => undefined, (error: Error) => error);
  assertStringIncludes(`${error}`, '"weights" of "bot" is of a version "9"; there is "1"');
});

Deno.test("serve() with watch reloads by itself", async () => {
  const reloaded = Promise.withResolvers<void>();
  const log = {
    debug() {},
    warn() {},
    error() {},
    info: (message: string) => void (message === "reloaded" && reloaded.resolve()),
  };
  await using served = await serveFolder({ "bot.ts": saying("old") }, { watch: true, log });
  assertEquals(await said(served), "old");
  await served.write({ "bot.ts": saying("new") });
  await reloaded.promise;
  assertEquals(await said(served), "new");
});

Deno.test("a function that failed recovers by itself when its file changes, without watch", async () => {
  const added = Promise.withResolvers<void>();
  const log = {
    debug() {},
    warn() {},
    error() {},
    info: (message: string) => void (message === "reloaded" && added.resolve()),
  };
  await using served = await serveFolder({ "bot.ts": "export default {;" }, { log });
  const { code } = await failure(said(served));
  assertEquals(code, 14);
  await served.write({ "bot.ts": saying("mended") });
  await added.promise;
  assertEquals(await said(served), "mended");
});

Deno.test("a function whose file changed while it slept is loaded anew, not half old", async () => {
  await using served = await serveFolder({ "bot.ts": saying("old") });
  await served.write({ "bot.ts": saying("new", 'description: "other",') });
  const { code, message } = await failure(said(served));
  assertEquals(code, 14, message);
  await served.server.reload();
  assertEquals(await said(served), "new");
});

Deno.test("a change while a folder is loaded is noticed", async () => {
  // Files are imported when the folder has been read.
  const meddler = `
import { defineModel } from "tensorlet";
const bot = new URL("bot.ts", import.meta.url);
await Deno.writeTextFile(bot, (await Deno.readTextFile(bot)).replaceAll('"old"', '"newer"'));
export default defineModel({ predict: () => [] });
`;
  const files = {
    "bot.ts": saying("old"),
    "meddler.ts": meddler,
    "functions.json": JSON.stringify({ meddler: { isolation: "inline" } }),
  };
  await using served = await serveFolder(files, { watch: true });
  await served.logged(/^reloaded$/);
  assertEquals(await said(served), "newer");
});
