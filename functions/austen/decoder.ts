// Continuous batching: the sequences that are written side by side share each run of the network. One that begins or ends
// does so between two runs; a reader that is slow holds nobody up.
import { BatchCache, type Cache } from "./cache.ts";

/** Rows of one run; more make each run longer and gain little. */
const MAX_ROWS = 16;

/** The input of one run, a row for each sequence. */
export interface Step {
  readonly tokens: readonly number[];
  /** Positions in use. */
  readonly lengths: readonly number[];
  /** [layer, row, head, position, size]. */
  readonly keys: Float32Array;
  readonly values: Float32Array;
  /** Positions that there is room for. */
  readonly positions: number;
}

/** What a run gives. */
export interface StepResult {
  /** [row, token]. */
  readonly logits: Float32Array;
  /** Of the new position: [layer, row, head, 1, size]. */
  readonly keys: Float32Array;
  readonly values: Float32Array;
}

interface Waiting {
  readonly token: number;
  readonly cache: Cache;
  readonly scored: PromiseWithResolvers<Float32Array>;
}

/** Reads one more token of each of any number of sequences. */
export class Decoder {
  readonly #run: (step: Step) => Promise<StepResult>;
  readonly #batch = new BatchCache();
  #waiting: Waiting[] = [];
  #isRunning = false;

  /** `run` runs the network once. */
  constructor(run: (step: Step) => Promise<StepResult>) {
    this.#run = run;
  }

  /** Reads `token` and remembers it in `cache`; the scores of what comes next. */
  decode(token: number, cache: Cache): Promise<Float32Array> {
    const scored = Promise.withResolvers<Float32Array>();
    this.#waiting.push({ token, cache, scored });
    if (!this.#isRunning) this.#start();
    return scored.promise;
  }

  // At the end of the event loop's turn: whoever writes side by side asks for its next token in the same turn.
  #start(): void {
    this.#isRunning = true;
    setImmediate(async () => {
      await this.#runWaiting();
      this.#isRunning = false;
      if (this.#waiting.length > 0) this.#start();
    });
  }

  async #runWaiting(): Promise<void> {
    const taken = this.#waiting.splice(0, MAX_ROWS);
    try {
      const caches = this.#batch.arrange(taken.map(({ cache }) => cache));
      const rows = caches.map((cache) => taken.find((waiting) => waiting.cache === cache)!);
      const { logits, keys, values } = await this.#run({
        tokens: rows.map(({ token }) => token),
        lengths: caches.map(({ length }) => length),
        keys: this.#batch.keys,
        values: this.#batch.values,
        positions: this.#batch.positions,
      });
      this.#batch.append(keys, values);
      const width = logits.length / rows.length;
      for (const [row, { scored }] of rows.entries()) scored.resolve(logits.slice(row * width, (row + 1) * width));
    } catch (error) {
      for (const { scored } of taken) scored.reject(error);
    }
  }
}
