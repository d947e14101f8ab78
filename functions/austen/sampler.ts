// Chooses the next token from the network's scores.

/** How tokens are chosen. */
export interface SamplerOptions {
  /** 0 takes the likeliest token; the higher, the more surprising. */
  readonly temperature: number;
  /** Only so many of the likeliest tokens are drawn from. */
  readonly topK: number;
  /** The same seed draws the same tokens. */
  readonly seed: number;
}

/** Scores (logits) of all tokens -> the chosen token. */
export type Sampler = (logits: Float32Array) => number;

/** Makes a sampler with a random generator of its own. */
export function createSampler({ temperature, topK, seed }: SamplerOptions): Sampler {
  const random = createRandom(seed);
  return (logits) => {
    const candidates = rank(logits, temperature === 0 ? 1 : topK);
    const likeliest = candidates[0]!;
    if (temperature === 0) return likeliest;
    // Softmax without its division: the draw is from 0 to the sum of the weights instead of from 0 to 1.
    const weights = candidates.map((token) => Math.exp((logits[token]! - logits[likeliest]!) / temperature));
    let rest = random() * weights.reduce((sum, weight) => sum + weight, 0);
    return candidates.find((_, i) => (rest -= weights[i]!) < 0) ?? likeliest;
  };
}

// The `count` likeliest tokens, the likeliest first.
function rank(logits: Float32Array, count: number): number[] {
  const least = logits.toSorted().at(-Math.min(count, logits.length))!;
  const tokens: number[] = [];
  for (const [token, logit] of logits.entries()) if (logit >= least) tokens.push(token);
  return tokens.sort((a, b) => logits[b]! - logits[a]!).slice(0, count);
}

/** A seed for callers that give none. */
export function randomSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0]!;
}

// mulberry32: Math.random() cannot be seeded.
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}
