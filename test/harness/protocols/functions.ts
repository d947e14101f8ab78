// Functions that answer in every mode by the same code, whatever their caller speaks.
import { defineModel, tensor } from "tensorlet";

/** What of a handler's context every handler has. */
interface Asked {
  readonly params: { readonly scale: number };
  readonly signal: AbortSignal;
  readonly requestId: string;
}

type Work = (numbers: readonly number[], ctx: Asked) => number | Promise<number>;
type Pieces = (numbers: readonly number[], ctx: Asked) => AsyncGenerator<string, void, undefined>;

const numbersOf = (text: string) => text.split(" ").map(Number);

/** A function that gives the same answer in every mode, whether its numbers come as a tensor or as a text. */
export function everyWay(work: Work, pieces: Pieces = once(work), version = "1") {
  return defineModel({
    version,
    input: { x: { dtype: "float32", shape: [2], optional: true } },
    params: { prompt: { type: "string", default: "" }, scale: { type: "number", default: 1 } },
    predict: async ({ x }, ctx) => [
      tensor("float32", [await work(x ? [...x.data] : numbersOf(ctx.params.prompt), ctx)]),
    ],
    stream: ({ x }, ctx) => pieces(x ? [...x.data] : numbersOf(ctx.params.prompt), ctx),
    chat: ({ content }, ctx) => pieces(numbersOf(content), ctx),
  });
}

function once(work: Work): Pieces {
  return async function* (numbers, ctx) {
    yield `${await work(numbers, ctx)}`;
  };
}

/** A function that waits until its call is aborted, and tells what became of it. */
export function waiter() {
  const started = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const model = everyWay(async (_, { signal }) => {
    try {
      started.resolve();
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
      return 0;
    } finally {
      ended.resolve();
    }
  });
  return { model, started: started.promise, ended: ended.promise };
}
