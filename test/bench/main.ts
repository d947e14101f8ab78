// deno task bench: Tensorlet and other servers side by side. README.md says what is measured and how to read it.
import { Command, InvalidArgumentError } from "commander";
import { dirname } from "node:path";
import { killAll } from "./suite/children.ts";
import { describeMachine } from "./suite/machine.ts";
import { measureMemory } from "./suite/memory.ts";
import { plot } from "./suite/plot.ts";
import { goalsOf, type Results } from "./suite/results.ts";
import { ROWS } from "./suite/rows.ts";
import { runRows } from "./suite/run_rows.ts";
import { formatResults } from "./suite/table.ts";
import { Workbench } from "./suite/workbench.ts";

const MEMORY = "memory";
const IDS = [...ROWS.map(({ id }) => id), MEMORY];

interface Options {
  readonly rounds: number | undefined;
  readonly only: readonly string[] | undefined;
  readonly quick: boolean;
  readonly long: boolean;
  readonly json: string;
  readonly svg: string;
}

function parseRounds(text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError("Wanted a whole number from 1 on.");
  return Number(text);
}

function parseOnly(text: string): string[] {
  const ids = text.split(",");
  const unknown = ids.find((id) => !IDS.includes(id));
  if (unknown !== undefined) throw new InvalidArgumentError(`Got "${unknown}", wanted some of ${IDS.join(", ")}.`);
  return ids;
}

const options: Options = new Command("deno task bench")
  .description("Measures Tensorlet beside other servers, interleaved, and prints the ratios.")
  .option("--rounds <number>", "rounds over all servers (default: 5, 3 with --quick)", parseRounds)
  .option("--only <rows>", `some of: ${IDS.join(",")}`, parseOnly)
  .option("--quick", "shorter blocks and no memory: three minutes instead of twenty", false)
  .option("--long", "memory after 500,000 calls instead of 50,000", false)
  .option("--json <file>", "where the results go", "dist/bench.json")
  .option("--svg <file>", "where the picture goes", "dist/bench.svg")
  .parse(Deno.args, { from: "user" })
  .opts();

globalThis.addEventListener("unload", killAll); // after a signal, or an error that nobody expected
const bench = new Workbench();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  Deno.addSignalListener(signal, () => {
    Deno.removeSync(bench.folder, { recursive: true });
    Deno.exit(signal === "SIGINT" ? 130 : 143);
  });
}
const results = await measure(options, bench).finally(() => bench[Symbol.asyncDispose]());
console.log(formatResults(results));
await write(options.json, `${JSON.stringify(results, undefined, 2)}\n`);
const { machine, startedAt, rounds } = results;
const subtitle =
  `${startedAt.slice(0, 10)}, ${machine["cores"]} cores of ${machine["cpu"]}, medians of ${rounds} rounds; ` +
  "thin lines: min to max";
await write(options.svg, plot(results.rows, subtitle));
console.log(`\nWritten: ${options.json}, ${options.svg}`);

async function measure({ only, quick, long, rounds = quick ? 3 : 5 }: Options, bench: Workbench): Promise<Results> {
  const start = performance.now();
  const startedAt = new Date().toISOString();
  const progress = (text: string) => console.error(`${((performance.now() - start) / 1000).toFixed(0)} s: ${text}`);
  const machine = await describeMachine(bench);
  const ids = only ?? IDS.filter((id) => !quick || id !== MEMORY);
  const chosen = ROWS.filter(({ id }) => ids.includes(id));
  const { rows, skipped } = await runRows(chosen, bench, { rounds, scale: quick ? 0.3 : 1, progress });
  const calls = long ? { parts: 10, calls: 50_000 } : { parts: 5, calls: quick ? 2_000 : 10_000 };
  const ofMemory = ids.includes(MEMORY) ? await measureMemory(bench, { ...calls, progress }) : undefined;
  return {
    startedAt,
    seconds: Math.round((performance.now() - start) / 1000),
    rounds,
    machine,
    rows,
    goals: rows.flatMap((row) => goalsOf(row).map((goal) => ({ row: row.id, ...goal }))),
    memory: ofMemory?.memory ?? [],
    memoryCalls: calls.calls,
    skipped: [...skipped, ...ofMemory?.skipped ?? []],
  };
}

async function write(file: string, text: string): Promise<void> {
  await Deno.mkdir(dirname(file), { recursive: true });
  await Deno.writeTextFile(file, text);
}
