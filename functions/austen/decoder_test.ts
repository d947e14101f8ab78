import { assertEquals, assertRejects } from "tensorlet/assert";
import { append, type Cache, CONTEXT, createCache, HEAD_SIZE, HEADS, LAYERS } from "./cache.ts";
import { Decoder, type Step, type StepResult } from "./decoder.ts";

const CELLS = HEADS * HEAD_SIZE;

/** What a token leaves in each layer, head and cell: all different. */
const trace = (token: number, layer: number, cell: number) => token * 10_000 + layer * CELLS + cell;

// The place of a cell of one position: [layer, row, head, position, size].
function placeOf({ tokens, positions }: Step, layer: number, row: number, cell: number, position: number): number {
  const head = Math.floor(cell / HEAD_SIZE);
  return (((layer * tokens.length + row) * HEADS + head) * positions + position) * HEAD_SIZE + cell % HEAD_SIZE;
}

// Scores are what a row remembers: a mistake in any place shows in them.
class FakeNetwork {
  readonly rows: number[] = [];
  failure: Error | undefined;

  readonly run = (step: Step): Promise<StepResult> => {
    this.rows.push(step.tokens.length);
    if (this.failure) return Promise.reject(this.failure);
    const rows = step.tokens.length;
    const [keys, values] = [new Float32Array(LAYERS * rows * CELLS), new Float32Array(LAYERS * rows * CELLS)];
    const logits = new Float32Array(rows * 2);
    for (let row = 0; row < rows; row++) {
      for (let layer = 0; layer < LAYERS; layer++) {
        for (let cell = 0; cell < CELLS; cell++) {
          const at = (layer * rows + row) * CELLS + cell;
          keys[at] = trace(step.tokens[row]!, layer, cell);
          values[at] = -keys[at]!;
          for (let position = 0; position < step.lengths[row]!; position++) {
            const place = placeOf(step, layer, row, cell, position);
            logits[2 * row]! += step.keys[place]! % 977;
            logits[2 * row + 1]! += step.values[place]! % 983;
          }
        }
      }
    }
    return Promise.resolve({ logits, keys, values });
  };
}

function createSequence(length: number): Cache {
  const cache = createCache();
  for (let token = 0; token < length; token++) {
    const keys = Float32Array.from(
      { length: LAYERS * CELLS },
      (_, i) => trace(token, Math.floor(i / CELLS), i % CELLS),
    );
    append(cache, keys, keys.map((value) => -value), 1);
  }
  return cache;
}

/** The scores of each token of a sequence, alone. */
async function alone(length: number, tokens: readonly number[]): Promise<number[][]> {
  const decoder = new Decoder(new FakeNetwork().run);
  const cache = createSequence(length);
  const scores: number[][] = [];
  for (const token of tokens) scores.push([...await decoder.decode(token, cache)]);
  return scores;
}

const count = (from: number, length: number) => Array.from({ length }, (_, i) => from + i);

Deno.test("Decoder scores sequences of any lengths side by side as it scores each alone", async () => {
  const network = new FakeNetwork();
  const decoder = new Decoder(network.run);
  const lengths = [3, 30, 61, 100];
  const write = async (length: number, tokens: readonly number[]) => {
    const cache = createSequence(length);
    const scores: number[][] = [];
    for (const token of tokens) scores.push([...await decoder.decode(token, cache)]);
    return scores;
  };
  // The longer ones outlast the others, and pass positions at which their rows have to grow.
  const texts = lengths.map((length, i) => [length, count(i, 5 + 10 * i)] as const);
  const together = await Promise.all(texts.map(([length, tokens]) => write(length, tokens)));
  for (const [i, [length, tokens]] of texts.entries()) assertEquals(together[i], await alone(length, tokens));
  assertEquals(network.rows, [...Array(5).fill(4), ...Array(10).fill(3), ...Array(10).fill(2), ...Array(10).fill(1)]);
});

Deno.test("Decoder goes on with whoever asks, in any order", async () => {
  const network = new FakeNetwork();
  const decoder = new Decoder(network.run);
  const [a, b] = [createSequence(5), createSequence(9)];
  const first = await Promise.all([decoder.decode(1, a), decoder.decode(2, b)]);
  const second = await Promise.all([decoder.decode(4, b), decoder.decode(3, a)]);
  const third = await decoder.decode(5, b); // a's reader is slow
  const fourth = await Promise.all([decoder.decode(6, a), decoder.decode(7, b)]);
  assertEquals([first[0], second[1], fourth[0]].map((scores) => [...scores!]), await alone(5, [1, 3, 6]));
  assertEquals([first[1], second[0], third, fourth[1]].map((scores) => [...scores!]), await alone(9, [2, 4, 5, 7]));
  assertEquals([network.rows, a.length, b.length], [[2, 2, 1, 2], 8, 13]);
});

Deno.test("Decoder reads up to the last position", async () => {
  const decoder = new Decoder(new FakeNetwork().run);
  const cache = createSequence(CONTEXT - 2);
  await decoder.decode(1, cache);
  await decoder.decode(2, cache);
  assertEquals(cache.length, CONTEXT);
});

Deno.test("Decoder makes several runs of more sequences than one run takes", async () => {
  const network = new FakeNetwork();
  const decoder = new Decoder(network.run);
  const scores = await Promise.all(count(0, 20).map((length) => decoder.decode(1, createSequence(length))));
  assertEquals([...scores[19]!], (await alone(19, [1]))[0]);
  assertEquals(network.rows, [16, 4]);
});

Deno.test("Decoder fails those of a run that failed, and goes on", async () => {
  const network = new FakeNetwork();
  const decoder = new Decoder(network.run);
  const cache = createSequence(2);
  network.failure = new Error("no memory");
  await assertRejects(() => decoder.decode(1, cache), Error, "no memory");
  network.failure = undefined;
  assertEquals([...await decoder.decode(1, cache)], (await alone(2, [1]))[0]);
});
