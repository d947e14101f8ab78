import { assert, assertAlmostEquals, assertEquals, assertNotEquals } from "tensorlet/assert";
import { createSampler } from "./sampler.ts";

const LOGITS = Float32Array.of(Math.log(1), Math.log(6), Math.log(3), -Infinity);

function draw(options: { temperature?: number; topK?: number; seed?: number }, count: number): number[] {
  const sample = createSampler({ temperature: 1, topK: 4, seed: 1, ...options });
  return Array.from({ length: count }, () => sample(LOGITS));
}

Deno.test("createSampler() takes the likeliest token at temperature 0", () => {
  assertEquals(draw({ temperature: 0 }, 3), [1, 1, 1]);
});

Deno.test("createSampler() draws in proportion to the probabilities at temperature 1", () => {
  const drawn = draw({}, 10_000);
  const share = (token: number) => drawn.filter((other) => other === token).length / drawn.length;
  assertAlmostEquals(share(0), 0.1, 0.02);
  assertAlmostEquals(share(1), 0.6, 0.02);
  assertAlmostEquals(share(2), 0.3, 0.02);
  assertEquals(share(3), 0);
});

Deno.test("createSampler() prefers the likeliest when it is colder", () => {
  const ones = (temperature: number) => draw({ temperature }, 1000).filter((token) => token === 1).length;
  assert(ones(0.3) > ones(1) && ones(1) > ones(3));
  assertEquals(ones(1e-300), 1000); // no overflow makes a NaN of it
});

Deno.test("createSampler() draws from the top_k likeliest only", () => {
  assertEquals(new Set(draw({ topK: 2 }, 1000)), new Set([1, 2]));
  assertEquals(new Set(draw({ topK: 1 }, 100)), new Set([1]));
});

Deno.test("createSampler() repeats itself with the same seed only", () => {
  assertEquals(draw({ seed: 7 }, 50), draw({ seed: 7 }, 50));
  assertNotEquals(draw({ seed: 7 }, 50), draw({ seed: 8 }, 50));
});

Deno.test("createSampler() draws from scores of any size", () => {
  const sample = createSampler({ temperature: 1, topK: 2, seed: 1 });
  const huge = Float32Array.of(5000, 5000, 0); // exp(5000) is no number
  assertEquals(new Set(Array.from({ length: 100 }, () => sample(huge))), new Set([0, 1]));
});
