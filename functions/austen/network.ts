// The language model in ONNX Runtime, exported twice: one network reads a prompt at once, one reads a token at a time.
import { fileURLToPath } from "node:url";

/** Tokens that the network can look back on. */
export const CONTEXT = 256;
const LAYERS = 4;
const HEADS = 4;
const HEAD_SIZE = 32;

/** What the network remembers of one sequence: keys and values of its attention, [layer, head, position, size]. */
export interface Cache {
  /** Positions in use. */
  length: number;
  readonly keys: Float32Array;
  readonly values: Float32Array;
}

/** A network that scores what comes next; one of them serves any number of sequences, each with its own cache. */
export interface Network {
  /** Reads the start of a sequence, 1 to `CONTEXT` tokens. */
  prefill(tokens: readonly number[]): Promise<{ readonly logits: Float32Array; readonly cache: Cache }>;
  /** Reads one more token and remembers it in `cache`, which must have room. */
  decode(token: number, cache: Cache): Promise<Float32Array>;
  /** Frees the native memory, which no garbage collector sees. */
  release(): Promise<void>;
}

/** An empty cache. */
export function createCache(): Cache {
  const size = LAYERS * HEADS * CONTEXT * HEAD_SIZE;
  return { length: 0, keys: new Float32Array(size), values: new Float32Array(size) };
}

/** Loads the two networks beside this file. */
export async function loadNetwork(): Promise<Network> {
  // Imported here, so that only loading the model needs the permission for native code.
  const { InferenceSession, Tensor } = await import("onnxruntime-node");
  const open = (file: string) =>
    InferenceSession.create(fileURLToPath(import.meta.resolve(file)), {
      intraOpNumThreads: 1, // the matrices are small: more threads cost more than they bring
      enableCpuMemArena: false, // prompts vary in length, and the arena keeps memory for each length it has seen
      enableMemPattern: false,
    });
  const prefillSession = await open("./prefill-fp16w.onnx");
  const decodeSession = await open("./decode-fp16w.onnx");
  const int64 = (values: readonly number[], dims: readonly number[]) =>
    new Tensor("int64", BigInt64Array.from(values, BigInt), dims);

  return {
    async prefill(tokens) {
      const { logits, k, v } = await prefillSession.run({
        input_ids: int64(tokens, [1, tokens.length]),
        lengths: int64([tokens.length], [1]),
      });
      const cache = createCache();
      append(cache, k!.data as Float32Array, v!.data as Float32Array, tokens.length);
      return { logits: logits!.data as Float32Array, cache };
    },
    async decode(token, cache) {
      // The whole cache goes in as it is: the network ignores what lies beyond past_len.
      const dims = [LAYERS, 1, HEADS, CONTEXT, HEAD_SIZE];
      const { logits, new_k, new_v } = await decodeSession.run({
        token: int64([token], [1]),
        past_len: int64([cache.length], [1]),
        past_k: new Tensor("float32", cache.keys, dims),
        past_v: new Tensor("float32", cache.values, dims),
      });
      append(cache, new_k!.data as Float32Array, new_v!.data as Float32Array, 1);
      return logits!.data as Float32Array;
    },
    async release() {
      await prefillSession.release();
      await decodeSession.release();
    },
  };
}

// Adds `count` positions, [layer, head, count, size], at the end of each head's part of the cache.
function append(cache: Cache, keys: Float32Array, values: Float32Array, count: number): void {
  const size = count * HEAD_SIZE;
  for (let head = 0; head < LAYERS * HEADS; head++) {
    const target = (head * CONTEXT + cache.length) * HEAD_SIZE;
    cache.keys.set(keys.subarray(head * size, (head + 1) * size), target);
    cache.values.set(values.subarray(head * size, (head + 1) * size), target);
  }
  cache.length += count;
}
