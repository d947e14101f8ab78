import { assertEquals, assertRejects } from "tensorlet/assert";
import { FakeNetwork } from "./fake_network.ts";
import { generate, type GenerateOptions } from "./generate.ts";
import { createSampler } from "./sampler.ts";

const OPTIONS: GenerateOptions = {
  sample: createSampler({ temperature: 0, topK: 1, seed: 0 }),
  limit: 10,
  stopAt: [0],
  signal: new AbortController().signal,
};

function run(network: FakeNetwork, prompt: readonly number[], options: Partial<GenerateOptions> = {}) {
  return Array.fromAsync(generate(network, prompt, { ...OPTIONS, ...options }));
}

Deno.test("generate() hands out each token before it computes the next", async () => {
  const network = new FakeNetwork([5, 6, 7]);
  const tokens = generate(network, [1, 2], OPTIONS);
  assertEquals((await tokens.next()).value, 5);
  assertEquals([network.prompts, network.decoded], [[[1, 2]], []]);
  assertEquals((await tokens.next()).value, 6);
  assertEquals(network.decoded, [5]);
  await tokens.return();
  assertEquals(network.decoded, [5]);
});

Deno.test("generate() ends at the limit without another run", async () => {
  const network = new FakeNetwork([5, 6, 7]);
  assertEquals(await run(network, [1], { limit: 3 }), [5, 6, 7]);
  assertEquals(network.decoded, [5, 6]);
});

Deno.test("generate() ends before a token to stop at", async () => {
  assertEquals(await run(new FakeNetwork([5, 6, 0]), [1]), [5, 6]);
});

Deno.test("generate() does not stop before the first token", async () => {
  const tokens = await run(new FakeNetwork([0, 6, 0]), [1]);
  assertEquals(tokens.length, 2);
  assertEquals(tokens.includes(0), false);
});

Deno.test("generate() reads the end of a prompt that is longer than the context", async () => {
  const network = new FakeNetwork([5]);
  await run(network, Array.from({ length: 300 }, (_, i) => i), { limit: 1 });
  assertEquals(network.prompts, [Array.from({ length: 256 }, (_, i) => 44 + i)]);
});

Deno.test("generate() goes on when the context is full", async () => {
  const network = new FakeNetwork(Array.from({ length: 400 }, (_, i) => 1 + i)); // each token once
  const tokens = await run(network, [999], { limit: 400 });
  assertEquals(tokens, Array.from({ length: 400 }, (_, i) => 1 + i));
  // The fake refuses positions beyond the context. What is read anew is the latest half, the newest token included.
  assertEquals(network.prompts.slice(1), [
    Array.from({ length: 128 }, (_, i) => 129 + i),
    Array.from({ length: 128 }, (_, i) => 258 + i),
  ]);
});

Deno.test("generate() stops between tokens when it is aborted", async () => {
  const network = new FakeNetwork([5], { repeat: true });
  const controller = new AbortController();
  const tokens = generate(network, [1], { ...OPTIONS, signal: controller.signal });
  await tokens.next();
  controller.abort(new Error("the reader left"));
  await assertRejects(() => tokens.next(), Error, "the reader left");
});
