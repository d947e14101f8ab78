// Continuous batching: eight texts of `austen` side by side, and one after the other.
// deno run -A test/bench/decode.ts [rounds]
import { generate } from "../../functions/austen/generate.ts";
import { loadNetwork } from "../../functions/austen/network.ts";
import { createSampler } from "../../functions/austen/sampler.ts";

const TEXTS = 8;
const TOKENS = 120;
const network = await loadNetwork();

async function write(seed: number): Promise<number> {
  const sample = createSampler({ temperature: 0.8, topK: 40, seed });
  const signal = new AbortController().signal;
  return (await Array.fromAsync(generate(network, [10, 20, 30, 40], { sample, limit: TOKENS, stopAt: [], signal })))
    .length;
}

async function rate(work: () => Promise<number>): Promise<number> {
  const start = performance.now();
  return await work() / (performance.now() - start) * 1000;
}

await write(0); // warms up
for (let round = Number(Deno.args[0] ?? 5); round > 0; round--) {
  const alone = await rate(async () => {
    let tokens = 0;
    for (let seed = 1; seed <= TEXTS; seed++) tokens += await write(seed);
    return tokens;
  });
  const together = await rate(async () => {
    const texts = Array.from({ length: TEXTS }, (_, seed) => write(seed + 1));
    return (await Promise.all(texts)).reduce((sum, tokens) => sum + tokens);
  });
  const ratio = (together / alone).toFixed(2);
  console.log(
    `one after the other ${alone.toFixed(0)} tokens/s, side by side ${together.toFixed(0)}: ${ratio} times as many`,
  );
}
await network.release();
