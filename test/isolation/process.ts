// What a function in a process of its own can see of the server, and what is left of it when it has ended.
import { assert, assertEquals, assertStringIncludes } from "tensorlet/assert";
import { children, socketFolders } from "../harness/child.ts";
import { type Folder, serveFolder } from "../harness/served_folder.ts";

const PROBE = `
import { defineModel } from "tensorlet";
const tried = async (action) => {
  try {
    return JSON.stringify(await action());
  } catch (error) {
    return error.name;
  }
};
export default defineModel({
  params: { code: { type: "string" } },
  async *stream(_inputs, ctx) {
    const action = new Function("Deno", "return (async () => (" + ctx.params.code + "))()");
    yield await tried(() => action(Deno));
  },
});
`;

function serveProbe(settings: object = {}): Promise<Folder> {
  const functions = { probe: { isolation: "process", ...settings } };
  return serveFolder({ "probe.ts": PROBE, "functions.json": JSON.stringify(functions) });
}

async function probe({ v1 }: Folder, code: string): Promise<unknown> {
  let text = "";
  for await (const { token } of v1.StreamPredict({ model_id: "probe", params: { code } })) text += token;
  return text.startsWith("{") || text.startsWith("[") || text.startsWith('"') || /^(\d|true|false)/.test(text)
    ? JSON.parse(text)
    : text;
}

Deno.test("a process sees neither the server's environment nor its files, nor the way it is connected", async () => {
  Deno.env.set("TENSORLET_TEST_SECRET", "secret");
  try {
    await using served = await serveProbe();
    assertEquals(await probe(served, 'Deno.env.get("TENSORLET_TEST_SECRET")'), "NotCapable");
    assertEquals(await probe(served, 'Deno.readTextFileSync("/etc/hostname")'), "NotCapable");
    assertEquals(await probe(served, "[...Deno.readDirSync('/tmp')]"), "NotCapable");
    assertEquals(await probe(served, "Deno.connect({ transport: 'unix', path: Deno.args[0] })"), "NotCapable");
    assertEquals(await probe(served, "Deno.listen({ port: 0 })"), "NotCapable");
    assertEquals(await probe(served, "new Deno.Command('true').output()"), "NotCapable");
    assertEquals(await probe(served, "Deno.permissions.querySync({ name: 'net' }).state.length"), 6); // denied, prompt
  } finally {
    Deno.env.delete("TENSORLET_TEST_SECRET");
  }
});

for (const isolation of ["process", "worker"]) {
  Deno.test(`a ${isolation} has nothing that Deno lets all functions share, whatever their permissions`, async () => {
    await using served = await serveProbe({ isolation });
    for (const name of ["Deno.openKv", "Deno.umask", "caches", "localStorage", "sessionStorage", "BroadcastChannel"]) {
      assertEquals(await probe(served, `typeof ${name}`), "undefined", name);
    }
  });
}

Deno.test("a process that is granted variables sees those", async () => {
  Deno.env.set("TENSORLET_TEST_A", "a");
  Deno.env.set("TENSORLET_TEST_B", "b");
  try {
    await using served = await serveProbe({ permissions: { env: ["TENSORLET_TEST_A"] } });
    assertEquals(await probe(served, 'Deno.env.get("TENSORLET_TEST_A")'), "a");
    assertEquals(await probe(served, 'Deno.env.get("TENSORLET_TEST_B")'), "NotCapable");
  } finally {
    Deno.env.delete("TENSORLET_TEST_A");
    Deno.env.delete("TENSORLET_TEST_B");
  }
});

Deno.test("a process has a heap of its own size", async () => {
  await using served = await serveProbe({ heapMb: 100 });
  const limit = await probe(served, "(await import('node:v8')).default.getHeapStatistics().heap_size_limit") as number;
  assert(limit < 300 * 2 ** 20, `${limit}`);
});

Deno.test("nothing is left of a process when the server has ended, nor of one that was killed", async () => {
  const folders = socketFolders().length;
  {
    await using served = await serveProbe();
    assertEquals(await probe(served, "1"), 1);
    const [pid] = children();
    assertEquals(socketFolders().length, folders); // once connected, it needs no socket
    Deno.kill(pid!, "SIGKILL");
    await served.logged(/ended with SIGKILL/);
    assertEquals(await probe(served, "2"), 2);
    assertEquals(children().length, 1);
  }
  assertEquals([children(), socketFolders().length], [[], folders]);
});

Deno.test("a process that is killed fails its call as unavailable, saying how it ended", async () => {
  await using served = await serveFolder({
    "wait.ts": `
import { defineModel } from "tensorlet";
export default defineModel({ async *stream() { yield "in call"; await new Promise(() => {}); } });
`,
    "functions.json": '{ "wait": { "isolation": "process" } }',
  });
  const call = served.v1.StreamPredict({ model_id: "wait" })[Symbol.asyncIterator]();
  assertEquals((await call.next()).value.token, "in call");
  Deno.kill(children()[0]!, "SIGKILL");
  const error = await call.next().then(() => undefined, (error: unknown) => error);
  assertEquals(error.code, 14);
  assertStringIncludes(error.details, 'An instance of function "wait" ended with SIGKILL');
});
