// Two instances of an ONNX function with one thread each, against one instance with two: images a second on two
// processors, one after the other in rounds. Run it: deno run -A test/bench/instances.ts [ROUNDS]
import { createLogger } from "../../runtime/core/log.ts";
import { tensor } from "../../runtime/core/tensor.ts";
import { describeInWorker } from "../../runtime/workers/describe.ts";
import { Pool } from "../../runtime/workers/pool.ts";
import { DEFAULT_POOL_LIMITS } from "../../runtime/workers/pool_limits.ts";
import { toWorkerPermissions } from "../../runtime/workers/permissions.ts";
import { workerLauncher } from "../../runtime/workers/worker.ts";
import { predictCall } from "../harness/calls.ts";

const ROUNDS = Number(Deno.args[0] ?? 6);
const ROUND_MS = 2_000;
/** Images of one call, and calls at once. */
const BATCH = 64;
const CALLERS = 4;

const model = new URL("../../functions/digits/model.onnx", import.meta.url);
const source = (threads: number) => `
import { InferenceSession, Tensor } from "onnxruntime-node";
import { defineModel } from "tensorlet";
export default defineModel({
  load: () => InferenceSession.create(${JSON.stringify(decodeURIComponent(model.pathname))}, {
    intraOpNumThreads: ${threads},
    enableCpuMemArena: false,
    enableMemPattern: false,
  }),
  unload: (session) => session.release(),
  async predict([images], ctx) {
    const { probabilities } = await ctx.model.run({ image: new Tensor("float32", images.data, images.shape) });
    return { dtype: "float32", shape: probabilities.dims, data: probabilities.data };
  },
});
`;

const log = createLogger(({ level, message, fields }) => level === "error" && console.error(message, fields));
const onStuck = () => {};
const folder = await Deno.makeTempDir();
const permissions = toWorkerPermissions({ ffi: true }, [folder]);

async function poolOf(name: string, threads: number, instances: number): Promise<Pool> {
  const file = new URL(`file://${folder}/${name}.ts`);
  await Deno.writeTextFile(file, source(threads));
  const sources = [{ name, version: undefined, base: file.href }];
  const [described] = await describeInWorker(sources, { permissions, timeoutMs: 60_000, onStuck });
  if (described!.status === "rejected") throw described!.reason;
  const launch = workerLauncher({ name, version: undefined, file, permissions, onStuck, log });
  const limits = { ...DEFAULT_POOL_LIMITS, instances: { min: instances, max: instances }, concurrency: 1 };
  const pool = new Pool({ description: described!.value, limits, warm: true, launch, log });
  await pool.start();
  return pool;
}

/** Images a second. */
async function measure(pool: Pool): Promise<number> {
  const end = performance.now() + ROUND_MS;
  let calls = 0;
  const call = async () => {
    while (performance.now() < end) {
      const images = tensor("float32", new Float32Array(BATCH * 784), [BATCH, 1, 28, 28]);
      for await (const _ of pool.invoke(predictCall({ input: { "0": images } })));
      calls++;
    }
  };
  const start = performance.now();
  await Promise.all(Array.from({ length: CALLERS }, call));
  return calls * BATCH / ((performance.now() - start) / 1000);
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

const pools = [
  ["one instance, two threads", await poolOf("one", 2, 1)],
  ["two instances, one thread each", await poolOf("two", 1, 2)],
] as const;
const rates = new Map<string, number[]>(pools.map(([name]) => [name, []]));
for (let round = 0; round <= ROUNDS; round++) {
  for (const [name, pool] of pools) {
    const rate = await measure(pool);
    if (round > 0) rates.get(name)!.push(rate); // the first warms up
  }
}
const base = median(rates.get(pools[0][0])!);
for (const [name, values] of rates) {
  console.log(
    `${name.padEnd(32)} ${median(values).toFixed(0).padStart(7)} images/s  ${(median(values) / base).toFixed(2)}`,
  );
}
for (const [, pool] of pools) await pool.close();
await Deno.remove(folder, { recursive: true });
