// The code that the console offers runs as it stands, and says what the function does.
import { assertEquals, assertStringIncludes } from "tensorlet/assert";
import type { Page } from "playwright-core";
import { ROOT } from "../harness/server_process.ts";
import { type Console, FIXTURES, PROJECT, startConsole, visit } from "./browser.ts";

const LIMIT_MS = 60_000;

interface Folder extends AsyncDisposable {
  readonly path: string;
  /** Runs a program; resolves to what it prints. */
  run(command: string, ...args: readonly string[]): Promise<string>;
}

async function folder(): Promise<Folder> {
  const path = await Deno.makeTempDir();
  return {
    path,
    async run(command, ...args) {
      const { success, stdout, stderr } = await new Deno.Command(command, {
        args: [...args],
        cwd: path,
        env: { NO_COLOR: "1", PYTHONDONTWRITEBYTECODE: "1" },
        signal: AbortSignal.timeout(LIMIT_MS),
      }).output();
      const [out, error] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
      if (!success) throw new Error(`${command} failed: ${error}`);
      return out!;
    },
    [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }),
  };
}

async function succeeds(command: string, args: readonly string[], env: Record<string, string> = {}): Promise<boolean> {
  try {
    return (await new Deno.Command(command, { args: [...args], env, stdout: "null", stderr: "null" }).output()).success;
  } catch {
    return false;
  }
}

/** A folder for what is installed here, until the tests end. */
async function toolFolder(): Promise<string> {
  const path = await Deno.makeTempDir();
  addEventListener("unload", () => Deno.removeSync(path, { recursive: true }));
  return path;
}

const PYTHON_PACKAGES = ["grpcio-tools", "numpy"];

/** A Python with the packages that the snippets name: what is there, or one of its own. */
async function findPython(): Promise<string> {
  const python = Deno.env.get("PYTHON") ?? "python3";
  if (await succeeds(python, ["-c", "import grpc_tools, grpc, numpy"])) return python;
  const venv = await toolFolder();
  await succeeds(python, ["-m", "venv", venv]);
  if (await succeeds(`${venv}/bin/pip`, ["install", "--quiet", ...PYTHON_PACKAGES])) return `${venv}/bin/python`;
  throw new Error("Cannot find a Python with grpcio-tools, nor make one");
}

const INSTALL_GRPCURL = `${ROOT}test/e2e/install_grpcurl.sh`;

/** Whether there is a grpcurl, or Go to make one, which is then on the PATH. */
async function hasGrpcurl(): Promise<boolean> {
  if (await succeeds("grpcurl", ["--version"])) return true;
  if (!await succeeds("go", ["version"])) return false;
  const path = await toolFolder();
  Deno.env.set("PATH", `${Deno.env.get("PATH")}:${path}`);
  return await succeeds(INSTALL_GRPCURL, [path]);
}

const python = await findPython();

type Run = (code: string, dir: Folder) => Promise<string>;

const RUN: Readonly<Record<string, Run>> = {
  async Python(code, dir) {
    // What its first lines ask for; pip's part has been done.
    for (const line of code.split("\n")) {
      if (line.startsWith("# curl")) await dir.run("bash", "-ec", line.slice(2));
    }
    await Deno.writeTextFile(`${dir.path}/snippet.py`, code);
    return await dir.run(python, "snippet.py");
  },
  async TypeScript(code, dir) {
    await Deno.writeTextFile(`${dir.path}/snippet.ts`, code);
    return await dir.run(
      Deno.execPath(),
      "run",
      "-A",
      "--quiet",
      "--config",
      `${ROOT}deno.json`,
      "--check",
      "snippet.ts",
    );
  },
  curl: (code, dir) => dir.run("bash", "-ec", code),
  grpcurl: (code, dir) => dir.run("bash", "-ec", code),
};

const runsGrpcurl = await hasGrpcurl();
if (!runsGrpcurl) console.log("There is neither grpcurl nor Go: its snippets are not run");
const LANGUAGES = Object.keys(RUN).filter((language) => language !== "grpcurl" || runsGrpcurl);

/** Runs what the page shows in each language; resolves to what each has printed. */
async function runAll(page: Page): Promise<Readonly<Record<string, string>>> {
  const printed: Record<string, string> = {};
  for (const language of LANGUAGES) {
    await page.getByRole("tab", { name: language, exact: true }).click();
    const code = await page.locator(".code pre").textContent();
    await using dir = await folder();
    try {
      printed[language] = await RUN[language]!(code!, dir);
    } catch (cause) {
      throw new Error(`The ${language} snippet failed:\n${code}`, { cause });
    }
  }
  return printed;
}

async function onPage(
  server: Console,
  fn: string,
  action: (page: Page) => Promise<void>,
): Promise<void> {
  await using seen = await visit(server, fn);
  await action(seen.page);
}

Deno.test("console: snippets of a predict run, with the tensors of the form", async () => {
  await using server = await startConsole(PROJECT);
  await onPage(server, "affine@1", async (page) => {
    await page.getByLabel("input", { exact: true }).fill("[[1, 2.5], [3, 4]]");
    const printed = await runAll(page);
    assertStringIncludes(printed.Python!, "[[12. 15.]\n [16. 18.]]");
    assertStringIncludes(printed.TypeScript!, "12, 15, 16, 18");
    assertStringIncludes(printed.curl!, '"data":[12,15,16,18]');
    if (runsGrpcurl) {
      const { outputs } = JSON.parse(printed.grpcurl!);
      assertEquals([...new Float32Array(Uint8Array.fromBase64(outputs[0].data).buffer)], [12, 15, 16, 18]);
    }
  });
});

for (const fn of ["digits@1", "image_classifier_v1@1"]) {
  Deno.test(`console: snippets of ${fn} run, zeros for the image`, async () => {
    await using server = await startConsole(PROJECT);
    await onPage(server, fn, async (page) => {
      for (const [language, text] of Object.entries(await runAll(page))) {
        const shape = { Python: "[[", TypeScript: "10", curl: '"shape":[1,10]', grpcurl: '"shape": [' }[language]!;
        assertStringIncludes(text, shape);
      }
    });
  });
}

Deno.test("console: snippets of inputs by name run, whatever their dtypes", async () => {
  await using server = await startConsole(FIXTURES);
  await onPage(server, "named@1", async (page) => {
    await page.getByLabel("ids", { exact: true }).fill("[[1, 9007199254740993]]");
    await page.getByLabel("flags", { exact: true }).fill("[true]");
    await page.getByLabel("words", { exact: true }).fill(`["it's", "\\"ü\\""]`);
    const printed = await runAll(page);
    for (const language of ["Python", "TypeScript", "curl"]) {
      for (const text of ["9007199254740993", "it's", "ü"]) assertStringIncludes(printed[language]!, text);
    }
  });
});

Deno.test("console: snippets of a stream and a chat run", async () => {
  await using server = await startConsole(FIXTURES);
  await onPage(server, "talker@2", async (page) => {
    await page.getByLabel("prompt").fill("it's said");
    await page.getByLabel("loud").selectOption("true");
    for (const text of Object.values(await runAll(page))) assertStringIncludes(text, "it's ");
    await page.getByRole("tab", { name: "Chat" }).click();
    for (const text of Object.values(await runAll(page))) assertStringIncludes(text, "morning!");
  });
});
