import { assertEquals, assertRejects } from "tensorlet/assert";
import { ConfigError } from "../../runtime/host/error.ts";
import { findFunctions, folderUrl, importFunction } from "../../runtime/host/loader.ts";

async function withFolder(
  files: Readonly<Record<string, string>>,
  action: (dir: string) => Promise<void>,
): Promise<void> {
  const dir = await Deno.makeTempDir({ prefix: "functions with space " });
  try {
    for (const [name, text] of Object.entries(files)) {
      await Deno.mkdir(`${dir}/${name}`.replace(/\/[^/]*$/, ""), { recursive: true });
      await Deno.writeTextFile(`${dir}/${name}`, text);
    }
    await action(dir);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

const MODEL = 'import { defineModel } from "tensorlet"; export default defineModel({ predict: ([x]) => x! });';

Deno.test("findFunctions() takes files, versions and folders, and nothing else", () =>
  withFolder({
    "plain.ts": "",
    "two@2.ts": "",
    "folder/mod.ts": "",
    "plain_test.ts": "",
    "plain_bench.ts": "",
    "types.d.ts": "",
    "_helper.ts": "",
    ".hidden.ts": "",
    "note.md": "",
    "assets/weights.bin": "",
    "_shared/mod.ts": "",
  }, async (dir) => {
    const found = (await findFunctions(folderUrl(dir))).map(({ name, version }) =>
      version ? `${name}@${version}` : name
    );
    assertEquals(found.sort(), ["folder", "plain", "two@2"]);
  }));

Deno.test("findFunctions() refuses a folder that is missing, empty or a file", () =>
  withFolder({ "note.md": "" }, async (dir) => {
    await assertRejects(() => findFunctions(folderUrl(`${dir}/missing`)), ConfigError, "no such folder");
    await assertRejects(() => findFunctions(folderUrl(dir)), ConfigError, "it holds no function");
    await assertRejects(() => findFunctions(folderUrl(`${dir}/note.md`)), ConfigError, "it is no folder");
  }));

Deno.test("importFunction() names a function after its file, and takes the version from it", () =>
  withFolder({ "two@2.ts": MODEL }, async (dir) => {
    const { name, version } = await importFunction((await findFunctions(folderUrl(dir)))[0]!);
    assertEquals([name, version], ["two", "2"]);
  }));

Deno.test("importFunction() refuses another default export", () =>
  withFolder({ "odd.ts": "export default { predict() {} };" }, async (dir) => {
    const [file] = await findFunctions(folderUrl(dir));
    await assertRejects(() => importFunction(file!), TypeError, "defineModel");
  }));
