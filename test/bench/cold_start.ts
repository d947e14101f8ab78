// What it costs to have functions that nobody calls, and to call one for the first time. Linux only.
// Run it: deno run -A test/bench/cold_start.ts [ROUNDS]
import { connect, DenoProcess } from "../harness/server_process.ts";

const ROUNDS = Number(Deno.args[0] ?? 5);
const EMPTY = `
import { defineModel } from "tensorlet";
export default defineModel({ predict: ([x]) => x });
`;

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function rssMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(Deno.readTextFileSync(`/proc/${pid}/status`))![1]) / 1024;
}

interface Figures {
  readonly servingMs: number;
  readonly rssMb: number;
  readonly coldMs: number;
  readonly warmMs: number;
  /** With every function called once. */
  readonly loadedMb: number;
}

async function measure(folder: string, count: number): Promise<Figures> {
  const start = performance.now();
  await using server = new DenoProcess(["run", "-A", "mod.ts", folder, "--port", "0"]);
  const [, port] = await server.stdout.find(/grpc:\/\/127\.0\.0\.1:(\d+)/);
  await server.stderr.find(/ ready /);
  const servingMs = performance.now() - start;
  const [pid] = server.children();
  await pause(1000); // what the start left behind is collected, or not
  const before = rssMb(pid!);
  using client = connect(Number(port));
  const call = (model_id: string) =>
    new Promise<number>((resolve, reject) => {
      const start = performance.now();
      client.Predict({ model_id, input_tensor: [1] }, (error: unknown) =>
        error ? reject(error) : resolve(performance.now() - start));
    });
  await call("f1"); // the connection, and code that ran for the first time
  const cold: number[] = [];
  for (let i = 2; i <= count; i++) cold.push(await call(`f${i}`));
  const warm: number[] = [];
  for (let i = 0; i < 200; i++) warm.push(await call("f1"));
  await pause(1000);
  return {
    servingMs,
    rssMb: before,
    coldMs: cold.length > 0 ? median(cold) : NaN,
    warmMs: median(warm),
    loadedMb: rssMb(pid!),
  };
}

const folders = new Map<number, string>();
for (const count of [1, 100]) {
  const folder = await Deno.makeTempDir();
  for (let i = 1; i <= count; i++) await Deno.writeTextFile(`${folder}/f${i}.ts`, EMPTY);
  folders.set(count, folder);
}
const all = new Map<number, Figures[]>([...folders.keys()].map((count) => [count, []]));
for (let round = 0; round < ROUNDS; round++) {
  for (const [count, folder] of folders) all.get(count)!.push(await measure(folder, count));
}
for (const [count, figures] of all) {
  const of = (key: keyof Figures) => median(figures.map((each) => each[key]));
  console.log(
    `${`${count} functions`.padEnd(14)} SERVING after ${of("servingMs").toFixed(0)} ms, RSS ${
      of("rssMb").toFixed(0)
    } MB, ` +
      `first call ${of("coldMs").toFixed(0)} ms, later ones ${of("warmMs").toFixed(2)} ms, all loaded ${
        of("loadedMb").toFixed(0)
      } MB`,
  );
}
const [one, hundred] = [...all.values()].map((figures) => ({
  idle: median(figures.map(({ rssMb }) => rssMb)),
  loaded: median(figures.map(({ loadedMb }) => loadedMb)),
}));
console.log(`99 functions that are not loaded: ${(hundred!.idle - one!.idle).toFixed(1)} MB`);
console.log(`one that is loaded and idle: ${((hundred!.loaded - one!.loaded) / 99).toFixed(1)} MB`);
for (const folder of folders.values()) await Deno.remove(folder, { recursive: true });
