// How functions in processes of their own end: by themselves, by the server's will, with the server.
import { assert, assertEquals, assertStringIncludes } from "tensorlet/assert";
import { ModelError } from "../../runtime/core/error.ts";
import { assertFails, floats, predictCall } from "../harness/calls.ts";
import { answers, children, faulty, isRunning, socketFolders, startChild } from "../harness/child.ts";

const ENDED = new ModelError("unavailable", "It is ended");
const one = predictCall({ input: floats(1) });

Deno.test("a process without memory fails its calls as exhausted, naming the limit, and harms no other", async () => {
  await using other = await startChild(faulty(""), { heapMb: 64 });
  const code = faulty("const all = []; for (;;) all.push(new Array(1000).fill({}));");
  await using child = await startChild(code, { heapMb: 64 });
  await assertFails("resource_exhausted", "64 MiB of heap (option heapMb)", () => child.run(one));
  assertEquals((await child.instance.ended)!.code, "resource_exhausted");
  assert(await answers(other));
});

for (
  const [code, how] of [
    ["Deno.exit(3);", "ended with exit code 3"],
    ["Deno.exit(0);", "ended with exit code 0"],
    ["console.error('# Fatal JavaScript out of memory'); Deno.exit(133);", "ended with exit code 133"],
    ["Promise.reject(new Error('stray')); await new Promise(() => {});", "crashed"],
  ] as const
) {
  Deno.test(`a process ends by itself: ${code}`, async () => {
    await using child = await startChild(faulty(code), { heapMb: 64 });
    const error = await assertFails("unavailable", how, () => child.run(one));
    assertEquals(error.details, { retryAfterMs: 100 });
    assertEquals(await child.instance.ended, error);
    await assertFails("unavailable", how, () => child.run(one));
  });
}

for (const signal of ["SIGKILL", "SIGTERM"] as const) {
  Deno.test(`a process is ended from outside by ${signal}`, async () => {
    await using child = await startChild(faulty("await new Promise(() => {});"));
    const call = child.run(one);
    Deno.kill(child.pid, signal);
    await assertFails("unavailable", `ended with ${signal}`, () => call);
  });
}

Deno.test("an endless loop in a process ends when its instance is killed", async () => {
  await using child = await startChild(faulty("for (;;);"));
  const call = child.run(one);
  assertEquals(await child.instance.responds(50), false);
  child.instance.kill(ENDED);
  await assertFails("unavailable", "It is ended", () => call);
  await child.instance.close(0);
  assertEquals([isRunning(child.pid), children()], [false, []]);
});

Deno.test("close() unloads the function in its process, and leaves nothing", async () => {
  const folders = socketFolders();
  const child = await startChild(
    `{ load: (ctx) => ctx.log, unload: (log) => log.info("unloaded"), predict: (inputs) => inputs }`,
  );
  assertEquals(socketFolders(), folders);
  await child.instance.close(1_000);
  assertEquals(child.records.map(({ message }) => message), ["unloaded"]);
  assertEquals([isRunning(child.pid), children()], [false, []]);
});

for (
  const [name, code, options, text] of [
    ["whose start takes too long", "for (;;);", { signal: () => AbortSignal.timeout(50) }, "deadline"],
    ["whose start is aborted before", faulty(""), { signal: () => AbortSignal.abort() }, "cancelled"],
    ["that is not JavaScript", "const = 5;", {}, "Unexpected token"],
    ["that throws", "throw new RangeError('at import');", {}, "at import"],
    ["that is no function", "export default 5;", {}, "its default export is not"],
    ["that exits", "Deno.exit(9);", {}, "ended with exit code 9"],
    ["that Deno does not start", faulty(""), { flags: ["--no-such-flag"] }, "ended with exit code 1"],
    ["without its configuration", faulty(""), { config: "/no/such/deno.json" }, "ended with exit code 1"],
  ] as const
) {
  Deno.test(`a process ${name} leaves nothing`, async () => {
    const folders = socketFolders();
    const signal = "signal" in options ? options.signal() : undefined;
    const starting = startChild(code, { ...options, signal });
    const error = await starting.then(() => undefined, (error: unknown) => error as Error);
    assertStringIncludes(error?.message ?? "it started", text);
    assertEquals([children(), socketFolders()], [[], folders]);
  });
}

for (const code of ["await new Promise(() => {});", "for (;;);"]) {
  Deno.test(`a process ends with its server: ${code}`, async () => {
    const folder = await Deno.makeTempDir();
    const path = `${folder}/function.ts`;
    // The first chunk has left when the timer fires.
    const stream =
      `async *stream() { yield "in call"; await new Promise((resolve) => setTimeout(resolve, 10)); ${code} }`;
    await Deno.writeTextFile(
      path,
      `import { defineModel } from "tensorlet"; export default defineModel({ ${stream} });`,
    );
    const main = new URL("../testdata/orphan_server.ts", import.meta.url);
    const server = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", main.pathname, path],
      stdin: "null",
      stdout: "piped",
    }).spawn();
    try {
      const lines = server.stdout.pipeThrough(new TextDecoderStream()).getReader();
      const pid = Number((await lines.read()).value);
      assert(isRunning(pid), `${pid}`);
      server.kill("SIGKILL");
      await server.status;
      await lines.cancel();
      const deadline = Date.now() + 10_000;
      while (isRunning(pid) && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 5));
      assert(!isRunning(pid), `process ${pid} goes on`);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}
