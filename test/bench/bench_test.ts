// The command from end to end on a machine that has nothing but Deno: a stand-in for h2load is all that is on the PATH.
import { assert, assertEquals, assertStringIncludes } from "tensorlet/assert";
import { ROOT } from "../harness/server_process.ts";
import type { Results } from "./suite/results.ts";

const COMMAND = ["run", "-A", `${ROOT}test/bench/main.ts`];

/** Answers as h2load does, at once, and appends to its log, as that does: what stands there is of another block. */
const STAND_IN = `#!/bin/sh
for argument in "$@"; do
  case $argument in --log-file=*) log=\${argument#*=} ;; esac
done
[ -z "$log" ] || [ ! -e "$log" ] || { echo "The log is of another block"; exit 1; }
[ -z "$log" ] || printf '1\\t200\\t1500\\n' >>"$log"
echo "finished in 1.00s, 1000.00 req/s, 1KB/s"
echo "requests: 10 total, 10 started, 10 done, 10 succeeded, 0 failed, 0 errored, 0 timeout"
echo "status codes: 10 2xx, 0 3xx, 0 4xx, 0 5xx"
echo "traffic: 1KB (1000) total, 1B (1) headers (space savings 1%), 1KB (900) data"
`;
/** Says that it has begun, and never ends. */
const STUCK = `#!/bin/sh
[ "$1" = --version ] && exit
echo >"$BENCH_BEGUN"
while :; do :; done
`;

/** A run with nothing but `h2load` on its PATH. */
class Run implements AsyncDisposable {
  readonly folder = Deno.makeTempDirSync({ prefix: "tensorlet_bench_test_" });
  readonly begun = `${this.folder}/begun/now`;
  readonly #mark = crypto.randomUUID();
  readonly child: Deno.ChildProcess;

  constructor(h2load: string, args: readonly string[]) {
    for (const name of ["bin", "begun", "tmp"]) Deno.mkdirSync(`${this.folder}/${name}`);
    Deno.writeTextFileSync(`${this.folder}/bin/h2load`, h2load, { mode: 0o755 });
    const { folder } = this;
    this.child = new Deno.Command(Deno.execPath(), {
      args: [...COMMAND, "--json", `${folder}/out/bench.json`, "--svg", `${folder}/out/bench.svg`, ...args],
      cwd: ROOT,
      env: {
        PATH: `${folder}/bin`,
        PYTHON: `${folder}/none`,
        TMPDIR: `${folder}/tmp`,
        BENCH_BEGUN: this.begun,
        BENCH_MARK: this.#mark,
        NO_COLOR: "1",
      },
      stdout: "piped",
      stderr: "piped",
    }).spawn();
  }

  /** What is left of the run: its processes, by their environment, and its temporary files. */
  leftovers(): string[] {
    const processes = [...Deno.readDirSync("/proc")].filter(({ name }) => {
      try {
        return /^\d+$/.test(name) && Deno.readTextFileSync(`/proc/${name}/environ`).includes(this.#mark);
      } catch {
        return false; // it has ended, or is somebody else's
      }
    });
    // A server keeps the folder of its control socket.
    const files = [...Deno.readDirSync(`${this.folder}/tmp`)].filter(({ name }) => name.startsWith("tensorlet_bench"));
    return [...processes, ...files].map(({ name }) => name);
  }

  /** Who was killed is there for a moment still. */
  async isGone(): Promise<void> {
    for (let tries = 0; this.leftovers().length > 0 && tries < 1_000; tries++) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assertEquals(this.leftovers(), []);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const name of this.leftovers()) if (/^\d+$/.test(name)) Deno.kill(Number(name), "SIGKILL");
    await Deno.remove(this.folder, { recursive: true });
  }
}

function isServer(pid: string): boolean {
  try {
    return /^\d+$/.test(pid) && Deno.readTextFileSync(`/proc/${pid}/cmdline`).includes("mod.ts");
  } catch {
    return false; // it has ended
  }
}

Deno.test("deno task bench measures what it can, says what it cannot, and leaves nothing behind", async () => {
  await using run = new Run(STAND_IN, ["--quick", "--rounds", "1", "--only", "small"]);
  const { code, stdout, stderr } = await run.child.output();
  const printed = new TextDecoder().decode(stdout);
  assertEquals(code, 0, new TextDecoder().decode(stderr));

  const results: Results = JSON.parse(await Deno.readTextFile(`${run.folder}/out/bench.json`));
  const [row] = results.rows;
  assertEquals([results.rows.length, row!.id], [1, "small"]);
  const names = row!.contenders.map(({ name }) => name);
  for (const name of ["Tensorlet", "Tensorlet, worker", "grpc-js, Deno"]) assert(names.includes(name), `${names}`);
  const { rate, p50, cpu } = row!.contenders[0]!.rounds[0]!;
  assertEquals([rate, p50], [1000, 1.5]);
  assert(Number.isFinite(cpu), `${cpu}`);
  const ratio = results.goals.find(({ to }) => to === "grpc-js, Deno");
  assertEquals([ratio?.ratio.median, ratio?.isMet], [1, false]);

  for (const [what, tool] of [["C++", "g++"], ["grpc-js, Node", "Node"], ["Python", "grpcio"]]) {
    const skipped = results.skipped.find((each) => each.what === what);
    assertStringIncludes(skipped?.why ?? "not skipped", tool!);
    assertStringIncludes(printed, `${what}`);
  }
  const svg = await Deno.readTextFile(`${run.folder}/out/bench.svg`);
  assert(svg.startsWith("<svg ") && svg.endsWith("</svg>\n"), svg);
  await run.isGone();
});

Deno.test("deno task bench ends all that it has started when it is told to stop", async () => {
  await using run = new Run(STUCK, ["--quick", "--only", "small"]);
  const watcher = Deno.watchFs(`${run.folder}/begun`);
  for await (const _ of watcher) break; // a server is under load
  assert(run.leftovers().some(isServer), `${run.leftovers()}`);
  run.child.kill("SIGINT");
  assertEquals((await run.child.output()).code, 130);
  await run.isGone();
});

Deno.test("deno task bench refuses rows that it does not know", async () => {
  const command = new Deno.Command(Deno.execPath(), {
    args: [...COMMAND, "--only", "small,smal"],
    env: { NO_COLOR: "1" },
  });
  const { code, stderr } = await command.output();
  assertEquals(code, 1);
  assertStringIncludes(new TextDecoder().decode(stderr), 'Got "smal", wanted some of tensor,');
});
