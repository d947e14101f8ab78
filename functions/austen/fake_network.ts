// For tests: stands in for the network, without weights or native code.
import { type Cache, CONTEXT, createCache } from "./cache.ts";
import type { Network } from "./network.ts";

/** Scores the tokens of a script highest, one after the other, and keeps what it was asked. */
export class FakeNetwork implements Network {
  /** The tokens of each prefill. */
  readonly prompts: (readonly number[])[] = [];
  /** The token of each decode. */
  readonly decoded: number[] = [];
  released = false;
  readonly #script: readonly number[];
  readonly #repeat: boolean;

  /** After the script it fails, unless `repeat`. */
  constructor(script: readonly number[], { repeat = false } = {}) {
    this.#script = script;
    this.#repeat = repeat;
  }

  prefill(tokens: readonly number[]): Promise<{ logits: Float32Array; cache: Cache }> {
    if (tokens.length < 1 || tokens.length > CONTEXT) throw new RangeError(`Cannot prefill ${tokens.length} tokens`);
    const logits = this.#score();
    this.prompts.push([...tokens]);
    return Promise.resolve({ logits, cache: { ...createCache(), length: tokens.length } });
  }

  decode(token: number, cache: Cache): Promise<Float32Array> {
    if (cache.length >= CONTEXT) throw new RangeError(`Cannot decode at position ${cache.length}`);
    const logits = this.#score();
    this.decoded.push(token);
    cache.length++;
    return Promise.resolve(logits);
  }

  release(): Promise<void> {
    this.released = true;
    return Promise.resolve();
  }

  #score(): Float32Array {
    const run = this.prompts.length + this.decoded.length;
    const token = this.#script[this.#repeat ? run % this.#script.length : run];
    if (token === undefined) throw new RangeError(`Cannot score run ${run}: the script has ${this.#script.length}`);
    const logits = new Float32Array(1024);
    logits[token] = 1000; // high enough that no temperature draws another
    return logits;
  }
}
