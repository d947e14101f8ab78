// `call` as users start it: a real process against a real server.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "tensorlet/assert";
import { writeNpy } from "../../runtime/call/npy.ts";
import { tensor } from "../../runtime/core/tensor.ts";
import { DenoProcess, FUNCTIONS, MAIN, type Result, ROOT } from "../harness/server_process.ts";

/** A server, and the command that calls it. */
class Served implements AsyncDisposable {
  readonly #server: DenoProcess;
  readonly #address: string;

  private constructor(server: DenoProcess, address: string) {
    this.#server = server;
    this.#address = address;
  }

  static async start(): Promise<Served> {
    const server = new DenoProcess([...MAIN, FUNCTIONS, "--port", "0", "--isolation", "inline", "--no-supervisor"]);
    const [, address] = await server.stdout.find(/grpc:\/\/(127\.0\.0\.1:\d+)/);
    await server.stderr.find(/ready/);
    return new Served(server, address!);
  }

  /** The command while it runs. */
  start(...args: readonly string[]): DenoProcess {
    return new DenoProcess([...MAIN, "call", ...args], { TENSORLET_ADDRESS: this.#address }, "piped");
  }

  /** The command with `stdin`, until it ends. */
  async pipe(stdin: string | Uint8Array<ArrayBuffer>, ...args: readonly string[]): Promise<Result> {
    await using process = this.start(...args);
    const bytes = typeof stdin === "string" ? new TextEncoder().encode(stdin) : stdin;
    const written = new Blob([bytes]).stream().pipeTo(process.stdin);
    const [result] = await Promise.all([
      process.result(),
      written.catch(() => {}), // it need not read what it is given
    ]);
    return result;
  }

  async run(...args: readonly string[]): Promise<Result> {
    return await this.pipe("", ...args);
  }

  /** A script in which `"$@"` is the command; its status is not that of its last program alone. */
  async shell(script: string, ...args: readonly string[]): Promise<Result> {
    const { code, stdout, stderr } = await new Deno.Command("bash", {
      args: ["-c", `set -o pipefail; ${script}`, "bash", Deno.execPath(), ...MAIN, "call", ...args],
      env: { NO_COLOR: "1", TENSORLET_ADDRESS: this.#address },
      stdin: "null",
    }).output();
    const decoder = new TextDecoder();
    return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }
}

function ok(stdout: string): Result {
  return { code: 0, stdout, stderr: "" };
}

Deno.test("call: a tensor is answered", async (t) => {
  await using served = await Served.start();
  const dir = await Deno.makeTempDir();
  try {
    await t.step("from JSON, whole numbers exact", async () => {
      assertEquals(await served.run("affine", "[1, 4611686018427387000]"), ok("[12, 9223372036854774010]\n"));
      assertEquals(await served.run("affine", "[[1.5, 2], [3, 4]]"), ok("[[13.0, 14.0],\n [16.0, 18.0]]\n"));
    });
    await t.step("from stdin", async () => {
      assertEquals(await served.pipe("[[1],\n [2]]\n", "affine", "-"), ok("[[12],\n [14]]\n"));
      assertEquals(await served.pipe("[1]\n[2.5]\n", "affine", "-"), ok("[12]\n[15.0]\n"));
      assertEquals(await served.pipe(writeNpy(tensor("float16", [1])), "affine", "-"), ok("[12.0]\n"));
    });
    await t.step("from and to files", async () => {
      await Deno.writeFile(`${dir}/x.npy`, writeNpy(tensor("int16", [1, 2], [2, 1])));
      const { code, stdout, stderr } = await served.run("affine", `${dir}/x.npy`, "--out", `${dir}/y.npy`);
      assertEquals([code, stdout, stderr], [0, "", `${dir}/y.npy: int16 [2, 1]\n`]);
      assertEquals(await Deno.readFile(`${dir}/y.npy`), writeNpy(tensor("int16", [12, 14], [2, 1])));
    });
    await t.step("with --json", async () => {
      const { stdout } = await served.run("affine", '["NaN", 1]', "--json", "-H", "request-id=r1");
      const outputs = '"outputs":[{"dtype":"float32","shape":[2],"data":["NaN",12.0]}]';
      assertMatch(stdout, new RegExp(`^\\{${RegExp.escape(outputs)},"latency_ms":\\d+,"request_id":"r1"\\}\n$`));
      const [tensor] = JSON.parse(stdout).outputs;
      assertEquals(await served.run("affine", JSON.stringify(tensor)), ok('["NaN", 34.0]\n'));
    });
    await t.step("by names in any order", async () => {
      const { stdout } = await served.run("grid", "mask=[true]", "cells=[[1, 2, 3, 4]]");
      assertEquals(stdout, '{"0": [[2.0, 4.0, 6.0, 8.0]],\n "1": [1, 4]}\n');
      assertEquals((await served.run("grid", '{"mask": [true], "cells": [[1, 2, 3, 4]]}')).stdout, stdout);
      assertEquals(await served.run("affine", '{"x": [1]}'), ok("[12]\n"));
      const { code, stderr } = await served.run("grid", "cell=[[1, 2, 3, 4]]");
      assertEquals(code, 1);
      assertStringIncludes(stderr, 'Cannot accept input "cell": the function has only "cells", "mask"');
    });
    await t.step("whose dtype is what the function wants", async () => {
      assertEquals(await served.run("sum", "[1, 2, 3]"), ok("[6.0]\n"));
      const { code, stderr } = await served.run("sum", "[1, 2, 3]", "--dtype", "int8");
      assertEquals(code, 1);
      assertStringIncludes(stderr, 'got dtype "int8", wanted "float32"; --dtype float32 converts it');
    });
    await t.step("with parameters and metadata", async () => {
      const { stdout } = await served.run("facts", "-p", "a=1", "-p", "b=x=y", "-H", "request-id=mine");
      assertStringIncludes(stdout, '["mine"]');
      assertStringIncludes(stdout, String.raw`["[[\"a\",\"1\"],[\"b\",\"x=y\"]]"]`);
    });
    await t.step("or refused in one line", async () => {
      for (
        const [args, code, text] of [
          [["boom", "[1]"], 1, /^error: internal: The function failed \(request id \S+\); .*\n$/],
          [["affine"], 1, /^error: invalid_argument: Cannot map a tensor: .* \(request [-\w]+\)\n$/],
          [["affin", "[1]"], 1, /^error: not_found: There is no model "affin"; .*"affine".* \(request [-\w]+\)\n$/],
          [["slow", "[1]", "--timeout-ms", "50"], 1, /^error: deadline_exceeded: .*\n$/],
          [["affine", "[1", "--json"], 2, /^error: Cannot read input 0 as JSON: .*\n$/],
          [["affine", "none.npy"], 2, /^error: Cannot read none.npy: there is no such file\n$/],
          [["affine", "[1]", "--out", `${dir}/no/y.npy`], 2, /^error: Cannot write .*: there is no such file\n$/],
          [["affine", "--jsn"], 2, /^error: .*Did you mean --json\?.*\n$/],
        ] as const
      ) {
        const result = await served.run(...args);
        assertEquals([result.code, result.stdout], [code, ""], args.join(" "));
        assertMatch(result.stderr, text);
      }
    });
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("call: tokens come as they are made", async (t) => {
  await using served = await Served.start();
  await t.step("where the function only streams", async () => {
    const { code, stdout, stderr } = await served.run("counter");
    assertEquals([code, stdout], [0, "t0t1t2t3t4"]);
    assertMatch(stderr, /^5 tokens, the first after \d+ ms.*\n$/);
  });
  await t.step("with --stream, --max-tokens and --json", async () => {
    const { stdout, stderr } = await served.run("counter", "--stream", "--max-tokens", "2", "--json");
    const lines = stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
    assertEquals(lines.slice(0, 2), [{ index: 0, token: "t0" }, { index: 1, token: "t1" }]);
    assertEquals([lines.length, lines[2].done, lines[2].tokens, stderr], [3, true, 2, ""]);
  });
  await t.step("one by one", async () => {
    await using process = served.start("counter", "--json", "-p", "delay_ms=600000", "--max-tokens", "2");
    await process.stdout.find(/"t0"/);
    process.signalGroup("SIGINT");
    assertEquals((await process.status).code, 130);
    assertEquals(await process.stderr.rest(), "");
    await process.stdin.close();
  });
  await t.step("until nobody reads them", async () => {
    const result = await served.shell('"$@" | head -c 12', "watched", "--stream", "-p", "key=cut", "-p", "delay_ms=1");
    assertEquals(result, ok("w0w1w2w3w4w5"));
    for (;;) {
      const { stdout } = await served.run("watched", "-p", "key=cut", "--json");
      const [started, _yielded, aborted, ended] = JSON.parse(stdout).outputs[0].data;
      assertEquals(started, 1);
      if (aborted === 1 && ended === 1) break; // else the server has still to notice
    }
  });
  await t.step("and then a failure", async () => {
    const { code, stdout, stderr } = await served.run("burst");
    assertEquals(code, 1);
    assertMatch(stdout, /^t0/); // grpc-js gives out a failure before tokens that came with it
    assertMatch(stderr, /^error: internal: .*\n$/);
  });
});

Deno.test("call: a pipe is a conversation, a turn a line", async (t) => {
  await using served = await Served.start();
  await t.step("with a function that only talks, or --chat", async () => {
    assertEquals(await served.pipe("hello\n\nagain", "parrot"), ok("1: hello\n2: again\n"));
    assertEquals(await served.run("talker", "--chat", "one"), ok("one \n"));
  });
  await t.step("in any script", async () => {
    assertEquals(await served.run("parrot", "héllo 😀"), ok("1: héllo 😀\n"));
    const { code, stderr } = await served.run("counter", "héllo");
    assertEquals(code, 1); // as a stream, whose message carries the prompt
    assertStringIncludes(stderr, 'Cannot accept param "prompt": the function has only "delay_ms"');
  });
  await t.step("and goes on with --session", async () => {
    await served.run("parrot", "--session", "mine", "hello");
    const { stdout } = await served.pipe("again\n", "parrot", "--session", "mine", "--json");
    const [token, done] = stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
    assertEquals(token, { turn: 1, index: 0, token: "2: again" });
    assertEquals([done.turn, done.done, done.session_id], [1, true, "mine"]);
  });
  await t.step("that answers each line when it comes, until it is interrupted", async () => {
    await using process = served.start("parrot", "--chat");
    const writer = process.stdin.getWriter();
    for (const [i, text] of ["one", "two"].entries()) {
      await writer.write(new TextEncoder().encode(`${text}\n`));
      await process.stdout.find(new RegExp(`^${i + 1}: ${text}\n`));
    }
    process.signalGroup("SIGINT");
    assertEquals([(await process.status).code, await process.stderr.rest()], [130, ""]);
    await writer.abort();
  });
  await t.step("that ends with a turn that fails", async () => {
    const { code, stdout, stderr } = await served.pipe("one\ntwo\n", "boom", "--chat");
    assertEquals([code, stdout], [1, ""]);
    assertMatch(stderr, /^error: internal: .*\n$/);
  });
});

Deno.test("call: --batch answers rows in their order", async (t) => {
  await using served = await Served.start();
  const dir = await Deno.makeTempDir();
  try {
    await t.step("of CSV, JSON lines and .npy, from files and stdin", async () => {
      await Deno.writeTextFile(`${dir}/x.csv`, "a,b\n1,2\n3,4.5\n");
      await Deno.writeFile(`${dir}/x.npy`, writeNpy(tensor("float64", [1, 2, 3, 4.5], [2, 2])));
      for (const path of [`${dir}/x.csv`, `${dir}/x.npy`]) {
        assertEquals(await served.run("sum", "--batch", path), ok("[3.0]\n[7.5]\n"));
      }
      assertEquals(await served.pipe("[1, 2]\n[3, 4.5]\n", "sum", "--batch", "-"), ok("[3.0]\n[7.5]\n"));
      assertEquals(await served.pipe("", "sum", "--batch", "-"), ok(""));
    });
    await t.step("with --json", async () => {
      const { stdout } = await served.pipe('{"id": "a", "features": [1]}\n[2]', "sum", "--batch", "-", "--json");
      const [first, second, done] = stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
      assertEquals([first.index, first.id, first.output, typeof first.latency_ms], [0, "a", [1], "number"]);
      assertEquals([second.index, "id" in second, second.output], [1, false, [2]]);
      assertEquals(done, { done: true, rows: 2 });
    });
    await t.step("of which there are many", async () => {
      const rows = Array.from({ length: 50_000 }, (_, i) => `${i},1\n`).join("");
      const { code, stdout } = await served.pipe(rows, "sum", "--batch", "-");
      const lines = stdout.trimEnd().split("\n");
      assertEquals([code, lines.length, lines[0], lines.at(-1)], [0, 50_000, "[1.0]", "[50000.0]"]);
    });
    await t.step("or none where one is wrong", async () => {
      for (
        const [stdin, args, code, text] of [
          ["1,2\n3", ["sum", "--batch", "-"], 2, /^error: Cannot read stdin, line 2: it has 1 values, .*\n$/],
          ["1,2\n", ["sum", "--batch", `${dir}/none.csv`], 2, /^error: Cannot read .*: there is no such file\n$/],
          ["[1, 2]\n[1]", ["chunks", "--batch", "-"], 1, /^error: invalid_argument: Vector "" at position 1: .*\n$/],
          ["[1]", ["nobody", "--batch", "-"], 1, /^error: not_found: .*\n$/],
        ] as const
      ) {
        const result = await served.pipe(stdin, ...args);
        assertEquals([result.code, result.stdout], [code, ""]);
        assertMatch(result.stderr, text);
      }
    });
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

interface Module {
  readonly specifier: string;
  readonly dependencies?: readonly {
    readonly code?: { readonly specifier?: string };
    readonly isDynamic?: boolean;
  }[];
}

/** What is loaded with a module at once. */
async function loaded(path: string): Promise<readonly string[]> {
  const { stdout } = await new Deno.Command(Deno.execPath(), { args: ["info", "--json", ROOT + path] }).output();
  const info: { readonly roots: readonly string[]; readonly modules: readonly Module[] } = JSON.parse(
    new TextDecoder().decode(stdout),
  );
  const modules = new Map(info.modules.map((module) => [module.specifier, module]));
  const found = new Set(info.roots);
  for (const specifier of found) {
    for (const { code, isDynamic } of modules.get(specifier)?.dependencies ?? []) {
      if (code?.specifier && !isDynamic) found.add(code.specifier);
    }
  }
  return [...found].map((specifier) => specifier.replace(`file://${ROOT}`, ""));
}

Deno.test("call: loads nothing of the server, and the server nothing of the client", async () => {
  const client = await loaded("runtime/call/call_command.ts");
  assert(client.includes("runtime/client.ts"));
  const serverOnly =
    /^runtime\/(assembly|middleware|workers|transports\/(memory|run_method)|host\/(serve|config))|onnx/;
  assertEquals(client.filter((path) => serverOnly.test(path)), []);
  for (const entry of ["runtime/host/serve_command.ts", "runtime/host/supervise.ts", "runtime/host/cli.ts"]) {
    assertEquals((await loaded(entry)).filter((path) => /^runtime\/(call|client)/.test(path)), []);
  }
});
