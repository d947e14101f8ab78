// `init`: what it makes is used as its README says, by real commands in a folder elsewhere.
import { assertEquals, assertStringIncludes } from "tensorlet/assert";
import { deno, succeeds } from "../harness/command.ts";
import { DenoProcess, MAIN, portOf } from "../harness/server_process.ts";

Deno.test("init: the project's checks, test, server and client work", async () => {
  const parent = await Deno.makeTempDir();
  try {
    const name = "it's a prøject";
    const printed = await succeeds(parent, ...MAIN, "init", name);
    assertStringIncludes(printed, "  cd 'it'\\''s a prøject'\n  deno task test");
    const dir = `${parent}/${name}`;
    for (const check of [["fmt", "--check"], ["lint"], ["check"]]) await succeeds(dir, ...check);
    assertStringIncludes(await succeeds(dir, "task", "test"), "1 passed | 0 failed");
    // What a caller gets wrong is found by the compiler.
    const client = await Deno.readTextFile(`${dir}/client.ts`);
    await Deno.writeTextFile(`${dir}/wrong.ts`, client.replace("factor: 10", 'factor: "10"'));
    assertStringIncludes((await deno(dir, "check", "wrong.ts")).stderr, "'string' is not assignable to type 'number'");

    await using server = new DenoProcess(["task", "--cwd", dir, "serve", "--port", "0"]);
    const port = await portOf(server);
    assertStringIncludes(await succeeds(dir, "task", "client", `127.0.0.1:${port}`), "scale: [10,20,30,40,50,60] in");
  } finally {
    await Deno.remove(parent, { recursive: true });
  }
});

Deno.test("init: a function's imports are the project's at every level of isolation", async () => {
  const dir = await Deno.makeTempDir();
  try {
    await succeeds(dir, ...MAIN, "init", ".");
    const config = JSON.parse(await Deno.readTextFile(`${dir}/deno.json`));
    config.imports.factors = "./factors.ts";
    await Deno.writeTextFile(`${dir}/deno.json`, JSON.stringify(config));
    await Deno.writeTextFile(`${dir}/factors.ts`, "export const TWICE = 2;\n");
    const scale = await Deno.readTextFile(`${dir}/functions/scale.ts`);
    const importing = `import { TWICE } from "factors";\n${scale.replace("default: 2", "default: TWICE")}`;
    await Deno.writeTextFile(`${dir}/functions/scale.ts`, importing);
    for (const isolation of ["inline", "worker", "process"]) {
      // What is not a function's own has to be granted to it.
      const settings = { isolation, ...isolation !== "inline" && { permissions: { read: [`${dir}/factors.ts`] } } };
      await Deno.writeTextFile(`${dir}/functions/functions.json`, JSON.stringify({ scale: settings }));
      await using server = new DenoProcess(["task", "--cwd", dir, "serve", "--port", "0"]);
      await succeeds(dir, "task", "client", `127.0.0.1:${await portOf(server)}`);
    }
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("init: makes a project in the folder that it is in", async () => {
  const dir = await Deno.makeTempDir();
  try {
    assertStringIncludes(await succeeds(dir, ...MAIN, "init", "."), "Next:\n  deno task test");
    assertEquals(JSON.parse(await Deno.readTextFile(`${dir}/deno.json`)).unstable, ["worker-options", "kv"]);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("init: overwrites nothing, and says what is wrong with the folder", async () => {
  const dir = await Deno.makeTempDir();
  try {
    await Deno.mkdir(`${dir}/full`);
    await Deno.writeTextFile(`${dir}/full/deno.json`, "mine");
    for (
      const [args, text] of [
        [["full"], 'error: Cannot make a project in "full": it holds "deno.json", wanted a new or empty folder'],
        [["full/deno.json"], "a part of the path is a file, wanted a folder"],
        [["full/deno.json/x"], "a part of the path is a file, wanted a folder"],
        [["/proc/tensorlet"], 'Cannot make a project in "/proc/tensorlet": No such file or directory'],
        [[""], "the folder's name is empty"],
        [[], "missing required argument 'dir'"],
        [["a", "b"], "too many arguments"],
      ] as const
    ) {
      const { code, stdout, stderr } = await deno(dir, ...MAIN, "init", ...args);
      assertEquals([code, stdout, stderr.trimEnd().split("\n").length], [2, "", 1], stderr);
      assertStringIncludes(stderr, text);
    }
    assertEquals([...Deno.readDirSync(dir)].map(({ name }) => name), ["full"]);
    assertEquals([...Deno.readDirSync(`${dir}/full`)].map(({ name }) => name), ["deno.json"]);
    assertEquals(await Deno.readTextFile(`${dir}/full/deno.json`), "mine");
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
