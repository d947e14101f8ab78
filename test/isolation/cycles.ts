// A function that sleeps and wakes a thousand times leaves nothing behind.
import { assert, assertEquals } from "tensorlet/assert";
import { answer } from "../harness/grpc_client.ts";
import { type Folder, serveFolder } from "../harness/served_folder.ts";

const FILE = `
import { defineModel } from "tensorlet";
export default defineModel({
  load: () => new Float32Array(100_000).fill(1),
  predict: ([x]) => x,
});
`;

interface Level {
  readonly descriptors: number;
  readonly threads: number;
  readonly rssMb: number;
}

function level(): Level {
  const count = (path: string) => [...Deno.readDirSync(path)].length;
  return {
    descriptors: count("/proc/self/fd"),
    threads: count("/proc/self/task"),
    rssMb: Deno.memoryUsage().rss / 2 ** 20,
  };
}

function leastOf(a: Level, b: Level): Level {
  return {
    descriptors: Math.min(a.descriptors, b.descriptors),
    threads: Math.min(a.threads, b.threads),
    rssMb: Math.min(a.rssMb, b.rssMb),
  };
}

async function cycle(served: Folder, asleep: () => Promise<void>): Promise<void> {
  const { output_tensor } = await answer<{ output_tensor: number[] }>((done) =>
    served.v1.Predict({ model_id: "f", input_tensor: [1] }, done)
  );
  assertEquals(output_tensor, [1]);
  await asleep();
}

// Resolves when the function's instance has ended.
function sleeper(served: Folder): () => Promise<void> {
  return async () => {
    const isAsleep = () => served.server.status()[0]!.state === "registered";
    while (!isAsleep()) {
      const { promise, resolve } = Promise.withResolvers<void>();
      setTimeout(resolve, 1); // idleMs is time that passes
      await promise;
    }
  };
}

for (const [isolation, count, warmUp] of [["worker", 1_000, 300], ["process", 40, 10]] as const) {
  Deno.test(`${count} cold starts and idle ends of a ${isolation} leave descriptors, threads and memory level`, async () => {
    const settings = { f: { isolation, idleMs: 1 } };
    await using served = await serveFolder({ "f.ts": FILE, "functions.json": JSON.stringify(settings) });
    const asleep = sleeper(served);
    const cycles = async (times: number) => {
      for (let i = 0; i < times; i++) await cycle(served, asleep);
      // The threads of the last instances take a moment to go, and their descriptors with them.
      let least = level();
      for (let i = 0; i < 20; i++) {
        await new Promise((resolve) => setTimeout(resolve, 50));
        least = leastOf(least, level());
      }
      return least;
    };
    const before = await cycles(warmUp);
    const after = await cycles(count - warmUp);
    console.log(Deno.inspect({ before, after }, { breakLength: Infinity }));
    assert(
      after.descriptors <= before.descriptors + 5,
      `descriptors: ${before.descriptors}, then ${after.descriptors}`,
    );
    assert(after.threads <= before.threads + 5, `threads: ${before.threads}, then ${after.threads}`);
    assert(after.rssMb <= before.rssMb * 1.2 + 30, `RSS: ${before.rssMb} MB, then ${after.rssMb} MB`);
  });
}
