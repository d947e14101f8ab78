// The language model in ONNX Runtime, exported twice: one network reads a prompt at once, one reads a token at a time.
import { fileURLToPath } from "node:url";
import { append, type Cache, createCache, HEAD_SIZE, HEADS, LAYERS } from "./cache.ts";
import { Decoder } from "./decoder.ts";

/** A network that scores what comes next; one of them serves any number of sequences, each with its own cache. */
export interface Network {
  /** Reads the start of a sequence, 1 to `CONTEXT` tokens. */
  prefill(tokens: readonly number[]): Promise<{ readonly logits: Float32Array; readonly cache: Cache }>;
  /** Reads one more token and remembers it in `cache`, which must have room; together with those of other sequences. */
  decode(token: number, cache: Cache): Promise<Float32Array>;
  /** Frees the native memory, which no garbage collector sees. */
  release(): Promise<void>;
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

  const decoder = new Decoder(async ({ tokens, lengths, keys, values, positions }) => {
    const rows = tokens.length;
    // Rows go in as they are: the network ignores what lies beyond past_len.
    const dims = [LAYERS, rows, HEADS, positions, HEAD_SIZE];
    const { logits, new_k, new_v } = await decodeSession.run({
      token: int64(tokens, [rows]),
      past_len: int64(lengths, [rows]),
      past_k: new Tensor("float32", keys, dims),
      past_v: new Tensor("float32", values, dims),
    });
    return {
      logits: logits!.data as Float32Array,
      keys: new_k!.data as Float32Array,
      values: new_v!.data as Float32Array,
    };
  });

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
    decode: (token, cache) => decoder.decode(token, cache),
    async release() {
      await prefillSession.release();
      await decodeSession.release();
    },
  };
}
