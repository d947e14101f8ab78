// The loop of every language model: score the next token, choose it, hand it out, read it.
import { CONTEXT } from "./cache.ts";
import type { Network } from "./network.ts";
import type { Sampler } from "./sampler.ts";

/** How far a text goes on. */
export interface GenerateOptions {
  readonly sample: Sampler;
  /** The most tokens. */
  readonly limit: number;
  /** Tokens that end the text; they are not part of it. */
  readonly stopAt: readonly number[];
  readonly signal: AbortSignal;
}

/** The tokens that follow `prompt`, each handed out before the next is computed. */
export async function* generate(
  network: Network,
  prompt: readonly number[],
  { sample, limit, stopAt, signal }: GenerateOptions,
): AsyncGenerator<number, void, undefined> {
  let window = prompt.slice(-CONTEXT);
  let { logits, cache } = await network.prefill(window);
  // An answer of nothing helps nobody, so the text does not stop before its first token.
  for (const token of stopAt) logits[token] = -Infinity;

  for (let count = 1; count <= limit; count++) {
    signal.throwIfAborted();
    const token = sample(logits);
    if (stopAt.includes(token)) return;
    yield token;
    if (count === limit) return; // nobody will ask for the token that the next run scores
    window.push(token);
    if (window.length <= CONTEXT) {
      logits = await network.decode(token, cache);
    } else {
      // The context is full. Positions are part of what the cache remembers, so it cannot be shifted: the later half
      // is read anew, which makes room for as many tokens again.
      window = window.slice(-CONTEXT / 2);
      ({ logits, cache } = await network.prefill(window));
    }
  }
}
