// What the network remembers of sequences: keys and values of its attention.

/** Tokens that the network can look back on. */
export const CONTEXT = 256;
export const LAYERS = 4;
export const HEADS = 4;
export const HEAD_SIZE = 32;

/** Of one sequence: [layer, head, position, size]. */
export interface Cache {
  /** Positions in use. */
  length: number;
  readonly keys: Float32Array;
  readonly values: Float32Array;
}

/** An empty cache. */
export function createCache(): Cache {
  const size = LAYERS * HEADS * CONTEXT * HEAD_SIZE;
  return { length: 0, keys: new Float32Array(size), values: new Float32Array(size) };
}

/** Adds `count` positions, [layer, head, count, size], at the end of each head's part. */
export function append(cache: Cache, keys: Float32Array, values: Float32Array, count: number): void {
  const size = count * HEAD_SIZE;
  for (let head = 0; head < LAYERS * HEADS; head++) {
    const target = (head * CONTEXT + cache.length) * HEAD_SIZE;
    cache.keys.set(keys.subarray(head * size, (head + 1) * size), target);
    cache.values.set(values.subarray(head * size, (head + 1) * size), target);
  }
  cache.length += count;
}

/** Room grows by so many positions: the network reads all of it, used or not. */
const STEP = 32;

/** Of several sequences, as the network reads them: [layer, row, head, position, size]. Their own caches stay complete. */
export class BatchCache {
  #members: readonly Cache[] = [];
  #positions = 0;
  keys = new Float32Array(0);
  values = new Float32Array(0);

  /** Positions that each row has room for. */
  get positions(): number {
    return this.#positions;
  }

  /** Makes these sequences the rows, in the order that it returns; copies them only where they were not. */
  arrange(caches: readonly Cache[]): readonly Cache[] {
    const isSame = caches.length === this.#members.length && caches.every((cache) => this.#members.includes(cache));
    const longest = Math.max(...caches.map(({ length }) => length));
    if (isSame && longest < this.#positions) return this.#members;
    this.#members = caches;
    this.#positions = Math.min(CONTEXT, (Math.floor(longest / STEP) + 1) * STEP);
    const size = LAYERS * caches.length * HEADS * this.#positions * HEAD_SIZE;
    this.keys = new Float32Array(size);
    this.values = new Float32Array(size);
    for (const [row, cache] of caches.entries()) {
      for (let layer = 0; layer < LAYERS; layer++) {
        for (let head = 0; head < HEADS; head++) {
          const source = (layer * HEADS + head) * CONTEXT * HEAD_SIZE;
          const end = source + cache.length * HEAD_SIZE;
          const target = this.#offset(layer, row, head);
          this.keys.set(cache.keys.subarray(source, end), target);
          this.values.set(cache.values.subarray(source, end), target);
        }
      }
    }
    return caches;
  }

  /** Adds one position to every row, [layer, row, head, 1, size], and to the sequence's own cache. */
  append(keys: Float32Array, values: Float32Array): void {
    const rows = this.#members.length;
    const own = HEADS * HEAD_SIZE;
    for (const [row, cache] of this.#members.entries()) {
      const rowKeys = new Float32Array(LAYERS * own);
      const rowValues = new Float32Array(LAYERS * own);
      for (let layer = 0; layer < LAYERS; layer++) {
        const from = (layer * rows + row) * own;
        rowKeys.set(keys.subarray(from, from + own), layer * own);
        rowValues.set(values.subarray(from, from + own), layer * own);
        for (let head = 0; head < HEADS; head++) {
          const target = this.#offset(layer, row, head) + cache.length * HEAD_SIZE;
          const part = from + head * HEAD_SIZE;
          this.keys.set(keys.subarray(part, part + HEAD_SIZE), target);
          this.values.set(values.subarray(part, part + HEAD_SIZE), target);
        }
      }
      append(cache, rowKeys, rowValues, 1);
    }
  }

  #offset(layer: number, row: number, head: number): number {
    return ((layer * this.#members.length + row) * HEADS + head) * this.#positions * HEAD_SIZE;
  }
}
