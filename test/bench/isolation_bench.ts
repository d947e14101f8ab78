// What isolation costs: blocks of the same calls to the same function inline, in a worker and in a process, in turn.
// Beside them the bare way of the tensor to a worker and back, which is what Deno's messages cost here and now. First
// with processors that are kept awake, then as they are: waking one up can cost more than all the rest.
// deno run -A test/bench/isolation_bench.ts [calls of each kind]
import { resolveModel } from "../../runtime/core/define.ts";
import { NEVER } from "../../runtime/core/signal.ts";
import { tensor } from "../../runtime/core/tensor.ts";
import { inlineLauncher } from "../../runtime/workers/inline.ts";
import type { Instance } from "../../runtime/workers/instance.ts";
import { toFlags, toWorkerPermissions } from "../../runtime/workers/permissions.ts";
import { processLauncher } from "../../runtime/workers/process.ts";
import { workerLauncher } from "../../runtime/workers/worker.ts";
import { predictCall, SILENT } from "../harness/calls.ts";
import model from "../testdata/functions/echo.ts";

const CALLS = Number(Deno.args[0] ?? 2_000);
const BLOCK = 50;
const WARM_UP_BLOCKS = 10;
const SIZES = { "100 bytes": 25, "602 KB": 150_528 };

const file = new URL("../testdata/functions/echo.ts", import.meta.url);
const options = { name: "echo", version: undefined, file, log: SILENT };
const instances: Readonly<Record<string, Instance>> = {
  inline: await inlineLauncher(resolveModel(model, "echo"), { log: SILENT })(NEVER),
  worker: await workerLauncher({
    ...options,
    permissions: toWorkerPermissions({}, [file.pathname]),
    onStuck: () => {},
  })(NEVER),
  process: await processLauncher({ ...options, flags: toFlags({}, [file.pathname]), heapMb: 256 })(NEVER),
};

const echo = new Worker(
  "data:application/javascript,onmessage = ({ data }) => postMessage(data, data.byteLength > 16384 ? [data.buffer] : [])",
  { type: "module" },
);
async function bare(elements: number): Promise<number> {
  const data = new Float32Array(elements).fill(0.5);
  const start = performance.now();
  const answered = new Promise((resolve) => echo.onmessage = resolve);
  echo.postMessage(data, data.byteLength > 16_384 ? [data.buffer] : []);
  await answered;
  return performance.now() - start;
}

const kinds: Readonly<Record<string, (elements: number) => Promise<number>>> = {
  ...Object.fromEntries(
    Object.entries(instances).map(([level, instance]) => [level, (elements: number) => timed(instance, elements)]),
  ),
  "bare worker": bare,
};
{
  using _awake = keepAwake();
  await measure("processors awake");
}
await measure("processors as they are");
for (const instance of Object.values(instances)) await instance.close(1_000);
echo.terminate();

async function measure(how: string): Promise<void> {
  for (const [size, elements] of Object.entries(SIZES)) {
    const times = new Map<string, number[]>(Object.keys(kinds).map((kind) => [kind, []]));
    for (let block = -WARM_UP_BLOCKS; block < CALLS / BLOCK; block++) {
      for (const [kind, call] of Object.entries(kinds)) {
        for (let i = 0; i < BLOCK; i++) {
          const ms = await call(elements);
          if (block >= 0) times.get(kind)!.push(ms);
        }
      }
    }
    print(`${size}, ${how}`, times);
  }
}

// Children at idle priority: they run where nobody else wants to.
function keepAwake(): Disposable {
  const stack = new DisposableStack();
  try {
    for (let i = 0; i < navigator.hardwareConcurrency; i++) {
      const child = new Deno.Command("chrt", { args: ["-i", "0", "sh", "-c", "while :; do :; done"] }).spawn();
      stack.defer(() => child.kill());
    }
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    console.log("Needs chrt to keep the processors awake: they are not");
  }
  return stack;
}

async function timed(instance: Instance, elements: number): Promise<number> {
  // Each call brings its own tensor, as a request does.
  const call = predictCall({ input: { x: tensor("float32", new Float32Array(elements).fill(0.5)) } });
  const start = performance.now();
  for await (const reply of instance.run(call).replies) {
    if (reply.type !== "tensors" || reply.output["0"]!.data.length !== elements) throw new Error("No echo");
  }
  return performance.now() - start;
}

function print(title: string, times: ReadonlyMap<string, readonly number[]>): void {
  const inline = quantile(times.get("inline")!, 0.5);
  console.log(`\n${title}\n${" ".repeat(18)}p50 ms    p99 ms    p50 on top of inline`);
  for (const [level, all] of times) {
    const [p50, p99] = [quantile(all, 0.5), quantile(all, 0.99)];
    console.log(`${level.padEnd(12)}  ${[p50, p99, p50 - inline].map((ms) => ms.toFixed(3).padStart(10)).join("")}`);
  }
}

function quantile(values: readonly number[], at: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * at)]!;
}
