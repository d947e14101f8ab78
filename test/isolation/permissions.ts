// What Deno really allows a worker and a child process, with what runtime/workers/permissions.ts tells it.
import { assert, assertEquals, assertStringIncludes } from "tensorlet/assert";
import { parseManifest } from "../../runtime/host/manifest.ts";
import { permissionHint, type Permissions, toFlags, toWorkerPermissions } from "../../runtime/workers/permissions.ts";

const LEVELS = ["worker", "process"] as const;
type Level = typeof LEVELS[number];

/** What became of a piece of code: the error that it threw, if any. */
interface Outcome {
  readonly value?: unknown;
  readonly error?: { readonly name: string; readonly message: string };
}

/** Files, servers, and a way to run code with the permissions of a function that owns `own.txt` and `own/`. */
interface Scene extends AsyncDisposable {
  readonly dir: string;
  readonly port: number;
  run(level: Level, code: string, granted: Permissions): Promise<Outcome>;
}

async function createScene(): Promise<Scene> {
  const dir = await Deno.realPath(await Deno.makeTempDir({ prefix: "permissions " }));
  await Deno.mkdir(`${dir}/own`);
  const files = {
    "own.txt": "mine",
    "own/asset.txt": "mine",
    "neighbour.txt": "secret",
    "neighbour.js": 'export default "secret";',
    "tool": "#!/bin/sh\nexit 0\n",
    "own/reads.js": 'import text from "../neighbour.txt" with { type: "text" };\nexport default text;\n',
    "own/helped.js": 'export { default } from "./helper.js";\n',
    "own/helper.js": 'export default "help";\n',
  };
  for (const [name, text] of Object.entries(files)) await Deno.writeTextFile(`${dir}/${name}`, text);
  await Deno.chmod(`${dir}/tool`, 0o755);
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => new Response("export default 1", { headers: { "content-type": "text/javascript" } }),
  );
  const socket = Deno.listen({ transport: "unix", path: `${dir}/db.sock` });
  const own = [`${dir}/own.txt`, `${dir}/own`];
  await Deno.writeTextFile(`${dir}/starter.js`, STARTER);
  let runs = 0;
  return {
    dir,
    port: server.addr.port,
    async run(level, code, granted) {
      const entry = `${dir}/entry${runs++}.js`;
      await Deno.writeTextFile(entry, wrap(code));
      if (level === "process") return await runDeno([...toFlags(granted, own), entry]);
      const permissions = JSON.stringify(toWorkerPermissions(granted, own));
      return await runDeno(["-A", "--unstable-worker-options", `${dir}/starter.js`, entry, permissions]);
    },
    async [Symbol.asyncDispose]() {
      socket.close();
      await server.shutdown();
      await Deno.remove(dir, { recursive: true });
    },
  };
}

// Starts a worker in a process of its own: what it imports would end up in this project's lock file.
const STARTER = `const [entry, permissions] = Deno.args;
const worker = new Worker("file://" + encodeURI(entry), { type: "module", deno: { permissions: JSON.parse(permissions) } });
worker.onmessage = () => worker.terminate();`;

function wrap(code: string): string {
  return `let outcome;
try { outcome = { value: await (async () => { ${code} })() } }
catch ({ name, message }) { outcome = { error: { name, message } } }
console.log(JSON.stringify(outcome));
self.postMessage?.("done");`;
}

async function runDeno(args: readonly string[]): Promise<Outcome> {
  const command = new Deno.Command(Deno.execPath(), { args: ["run", "--quiet", "--no-config", "--no-lock", ...args] });
  const { stdout, stderr } = await command.output();
  const text = new TextDecoder().decode(stdout);
  if (text === "") throw new Error(new TextDecoder().decode(stderr));
  return JSON.parse(text.trim().split("\n").at(-1)!);
}

/** Something that a function with no permission may not do. */
interface Deed {
  readonly name: string;
  readonly code: (scene: Scene) => string;
  /** What the hints have granted when it works. */
  readonly needs: (scene: Scene) => Permissions;
}

const text = JSON.stringify;

const DEEDS: readonly Deed[] = [
  {
    name: "read a neighbour's file",
    code: ({ dir }) => `return Deno.readTextFileSync(${text(`${dir}/neighbour.txt`)})`,
    needs: ({ dir }) => ({ read: [`${dir}/neighbour.txt`] }),
  },
  {
    name: "read by a relative path",
    code: () => `return Deno.readTextFileSync("deno.json").length`,
    needs: () => ({ read: [`${Deno.cwd()}/deno.json`] }),
  },
  {
    name: "import a neighbour's module",
    code: ({ dir }) => `return (await import(${text(`file://${encodeURI(dir)}/`)} + "neighbour.js")).default`,
    needs: ({ dir }) => ({ read: [`${dir}/neighbour.js`] }),
  },
  {
    name: "write its own asset",
    code: ({ dir }) => `Deno.writeTextFileSync(${text(`${dir}/own.txt`)}, "changed")`,
    needs: ({ dir }) => ({ write: [`${dir}/own.txt`] }),
  },
  {
    name: "make a symbolic link",
    code: ({ dir }) => `const link = ${text(`${dir}/link`)}; Deno.symlinkSync("/etc", link); Deno.removeSync(link)`,
    needs: () => ({ read: true, write: true }),
  },
  {
    name: "connect",
    code: ({ port }) => `(await Deno.connect({ hostname: "127.0.0.1", port: ${port} })).close()`,
    needs: ({ port }) => ({ net: [`127.0.0.1:${port}`] }),
  },
  {
    name: "fetch",
    code: ({ port }) => `await (await fetch("http://localhost:${port}/")).text()`,
    needs: ({ port }) => ({ net: [`localhost:${port}`] }),
  },
  {
    name: "listen",
    code: () => `Deno.listen({ hostname: "127.0.0.1", port: 0 }).close()`,
    needs: () => ({ net: ["127.0.0.1:0"] }),
  },
  {
    name: "connect by node:net",
    code: ({ port }) =>
      `const { connect } = await import("node:net");
       await new Promise((resolve, reject) => {
         const socket = connect(${port}, "localhost").on("error", reject).on("connect", () => resolve(socket.destroy()));
       })`,
    needs: () => ({ net: ["localhost"] }),
  },
  {
    name: "connect to a Unix socket",
    code: ({ dir }) => `(await Deno.connect({ transport: "unix", path: ${text(`${dir}/db.sock`)} })).close()`,
    needs: ({ dir }) => ({ read: [`${dir}/db.sock`], write: [`${dir}/db.sock`], net: [`unix:${dir}/db.sock`] }),
  },
  { name: "read a variable", code: () => `Deno.env.get("HOME")`, needs: () => ({ env: ["HOME"] }) },
  { name: "read all variables", code: () => `Deno.env.toObject()`, needs: () => ({ env: true }) },
  {
    name: "load native code",
    code: ({ dir }) =>
      `try { Deno.dlopen(${text(`${dir}/x.so`)}, {}) } catch (error) {
         if (!error.message.startsWith("Could not open library")) throw error;
       }`,
    needs: ({ dir }) => ({ ffi: [`${dir}/x.so`] }),
  },
  { name: "make a pointer", code: () => `Deno.UnsafePointer.create(1n)`, needs: () => ({ ffi: true }) },
  { name: "run a program", code: () => `new Deno.Command("ls").outputSync()`, needs: () => ({ run: ["ls"] }) },
  {
    name: "run a program by node:child_process",
    code: () =>
      `const { execFile } = await import("node:child_process");
       await new Promise((resolve, reject) => execFile("ls", (error) => error ? reject(error) : resolve()))`,
    needs: () => ({ env: true, run: ["ls"] }),
  },
  {
    name: "run a program with another loader",
    code: () => `new Deno.Command("ls", { env: { LD_PRELOAD: "x" } }).outputSync()`,
    needs: () => ({ run: true }),
  },
  { name: "signal a process", code: () => `Deno.kill(Deno.ppid, "SIGCONT")`, needs: () => ({ run: true }) },
  { name: "ask for the host's name", code: () => `Deno.hostname()`, needs: () => ({ sys: ["hostname"] }) },
  {
    name: "ask for processors by node:os",
    code: () => `(await import("node:os")).cpus()`,
    needs: () => ({ sys: ["cpus"] }),
  },
  {
    name: "import from a host",
    code: ({ port }) => `return (await import("http://127.0.0.1:${port}/" + "module.js")).default`,
    needs: ({ port }) => ({ import: [`127.0.0.1:${port}`] }),
  },
];

for (const level of LEVELS) {
  for (const { name, code, needs } of DEEDS) {
    Deno.test(`a ${level} may not ${name}, until the hints' lines are in functions.json`, async () => {
      await using scene = await createScene();
      let granted: Permissions = {};
      let outcome = await scene.run(level, code(scene), granted);
      assert(outcome.error, "it may without a permission");
      for (let lines = 0; outcome.error && lines < 4; lines++) {
        const hint = permissionHint(outcome.error, "x", { granted });
        assert(hint, `no hint of ${outcome.error.name}: ${outcome.error.message}`);
        const line = /"permissions": .* (?=(?:to|of) "x" in functions\.json$)/.exec(hint)?.[0];
        granted = parseManifest(`{"x": {${line}}}`, "/f/functions.json", ["x"]).settingsOf("x").permissions;
        outcome = await scene.run(level, code(scene), granted);
      }
      assertEquals(outcome.error, undefined);
      assertEquals(granted, needs(scene));
    });
  }

  Deno.test(`a ${level} may read its own assets and nothing else`, async () => {
    await using scene = await createScene();
    const code = `const read = (name) => Deno.readTextFileSync(${text(scene.dir)} + name);
      const kinds = ["read", "write", "net", "env", "ffi", "run", "sys", "import"];
      const states = kinds.map((name) => Deno.permissions.querySync({ name }).state === "granted");
      return [read("/own.txt"), read("/own/asset.txt"), ...states]`;
    assertEquals((await scene.run(level, code, {})).value, ["mine", "mine", ...Array(8).fill(false)]);
  });

  Deno.test(`a ${level} may not import from the hosts that Deno trusts by default`, async () => {
    await using scene = await createScene();
    const { error } = await scene.run(
      level,
      `await import("https://gist.githubusercontent.com/" + "@std/none/1.0.0/mod.ts")`,
      {},
    );
    assertStringIncludes(
      permissionHint(error, "x")!,
      'add "permissions": { "import": ["gist.githubusercontent.com:443"] } to "x"',
    );
  });

  Deno.test(`a ${level} may not look into its process, whatever is granted`, async () => {
    await using scene = await createScene();
    const { error } = await scene.run(level, `Deno.readTextFileSync("/proc/self/environ")`, { read: true });
    assertStringIncludes(permissionHint(error, "x")!, 'may not open "/proc/self/environ": no permission allows it');
  });

  Deno.test(`a ${level} gets no more by a worker of its own`, async () => {
    await using scene = await createScene();
    const source = `const { parentPort } = require("node:worker_threads");
      try { parentPort.postMessage(require("node:fs").readFileSync(${text(`${scene.dir}/neighbour.txt`)}, "utf8")) }
      catch (error) { parentPort.postMessage(error.message) }`;
    const code = `const { Worker } = await import("node:worker_threads");
      const worker = new Worker(${text(source)}, { eval: true });
      const message = await new Promise((resolve) => worker.on("message", resolve));
      await worker.terminate();
      return message`;
    assertStringIncludes(`${(await scene.run(level, code, {})).value}`, "Requires read access");
  });

  // Deno prepares what a starting module imports by literal texts with the rights of whoever starts it.
  Deno.test(`a function's imports have a ${level}'s permissions if the function's own import is computed`, async () => {
    await using scene = await createScene();
    const own = `file://${encodeURI(scene.dir)}/own`;
    const computed = (name: string) =>
      scene.run(level, `return (await import(atob("${btoa(own + name)}"))).default`, {});
    const { error } = await computed("/reads.js");
    assertStringIncludes(permissionHint(error, "x")!, `{ "read": [${text(`${scene.dir}/neighbour.txt`)}] }`);
    assertEquals((await computed("/helped.js")).value, "help");
    const literal = await scene.run(level, `return (await import("${own}/reads.js")).default`, {});
    assertEquals(literal.value, "secret");
  });
}
