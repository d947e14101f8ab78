// The public types infer what a handler gets, and refuse what it may not do. `deno check` is what tests them; nothing runs.
import {
  type AnyModel,
  type AnyTensor,
  defineModel,
  type InferInput,
  ModelError,
  type SessionEnd,
  type Tensor,
} from "tensorlet";
import { testModel } from "tensorlet/testing";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false;
declare function is<T extends true>(): void;

export function types() {
  const embed = defineModel({
    input: { dtype: "string" },
    output: { dtype: "float32", shape: [-1, 384] },
    params: {
      normalize: { type: "boolean", default: true },
      task: { type: "string", enum: ["query", "passage"], default: "query" },
      limit: { type: "integer" },
    },
    batching: { maxSize: 32 },
    load(ctx) {
      ctx.log.info("Loading weights", { from: ctx.asset("weights.bin").href });
      return { run: (texts: readonly string[]) => Promise.resolve(new Float32Array(texts.length * 384)) };
    },
    predict(input, ctx) {
      is<Equal<typeof input.data, string[]>>();
      is<Equal<typeof ctx.params.normalize, boolean>>();
      is<Equal<typeof ctx.params.task, "query" | "passage">>();
      is<Equal<typeof ctx.params.limit, number | undefined>>();
      // @ts-expect-error emit exists only for stream and chat
      ctx.emit;
      // @ts-expect-error no such param
      ctx.params.nope;
      return ctx.model.run(input.data); // bare Float32Array: the runtime completes the shape
    },
    async *stream(input, ctx) {
      for (const text of input.data) yield await ctx.model.run([text]);
    },
    batch: (items) =>
      items.map((i) =>
        i.input.data.length > 0
          ? new Float32Array(384)
          : new ModelError("invalid_argument", "Cannot embed an empty input")
      ),
  });
  const classify = defineModel({
    input: { image: { dtype: "uint8", shape: [-1, -1, 3] }, mask: { dtype: "bool", optional: true } },
    output: { scores: { dtype: "float32" }, label: { dtype: "int64" } },
    predict({ image, mask }) {
      is<Equal<typeof image.data, Uint8Array>>();
      const [h, w, c] = image.shape; // three numbers, also under noUncheckedIndexedAccess
      // @ts-expect-error an optional input may be missing
      mask.data;
      return { scores: new Float32Array(h * w * c), label: BigInt64Array.of(1n) };
    },
  });
  const bot = defineModel({
    session: { init: () => ({ asked: 0 }) },
    async *chat(message, ctx) {
      ctx.session.state.asked++;
      for (const word of message.content.split(" ")) {
        ctx.signal.throwIfAborted();
        yield word;
      }
    },
  });
  defineModel({ // callback library
    input: { dtype: "int32" },
    output: { dtype: "int32" },
    async stream(input, ctx) {
      for (const x of input.data) await ctx.emit(Int32Array.of(x));
    },
  });
  defineModel({
    input: { dtype: "float32" },
    output: { dtype: "float32" },
    // @ts-expect-error wrong output dtype
    predict: (x) => new Int32Array(x.data.length),
  });
  defineModel({
    // @ts-expect-error unknown dtype
    input: { dtype: "float" },
    output: { dtype: "float32" },
  });
  defineModel({
    input: { x: { dtype: "float32" } },
    output: { a: { dtype: "float32" }, b: { dtype: "int64" } },
    // @ts-expect-error output b is missing
    predict: () => ({ a: new Float32Array(1) }),
  });
  defineModel({
    input: { dtype: "float32" },
    output: { dtype: "float32" },
    // @ts-expect-error misspelt handler
    predcit: () => new Float32Array(1),
  });
  const affine = defineModel({ // untyped: the three-line function
    predict: ([x]) => {
      is<Equal<typeof x, AnyTensor | undefined>>();
      return x!;
    },
  });
  const counter = defineModel({
    async *stream(_inputs, ctx) {
      is<Equal<typeof ctx.maxTokens, number | undefined>>();
      is<Equal<typeof ctx.params, Readonly<Record<string, string>>>>();
      for (let i = 0; i < (ctx.maxTokens ?? 5); i++) yield `t${i}`;
      yield { token: ".", final: true };
    },
  });
  const writer = defineModel({ // typed: tokens beside tensors of the output spec
    input: { dtype: "int64", shape: [-1] },
    output: { dtype: "float32" },
    async *stream(input, ctx) {
      is<Equal<typeof input.data, BigInt64Array>>();
      yield "Once";
      await ctx.emit(" upon");
      yield new Float32Array(1);
      yield { token: " a time", final: true };
    },
  });
  const polite = defineModel({
    session: { init: () => ({ turns: 0 }) },
    async *chat(message, ctx) {
      ctx.session.state.turns++;
      yield message.content;
    },
    close(session, reason) {
      is<Equal<typeof session.state, { turns: number }>>();
      is<Equal<typeof reason, SessionEnd>>();
    },
  });
  async function _harness() {
    await using h = await testModel(embed, { model: { run: () => Promise.resolve(new Float32Array(384)) } });
    const out = await h.predict(["hello"], { params: { task: "passage" }, timeoutMs: 50 });
    is<Equal<typeof out.data, Float32Array>>();
    const [n, d] = out.shape;
    // @ts-expect-error not in the enum
    await h.predict(["hello"], { params: { task: "other" } });
    await using b = await testModel(bot);
    const chat = b.chat();
    is<Equal<typeof chat.session.state, { asked: number }>>();
    for await (const delta of chat.send("hi there")) is<Equal<typeof delta, string>>();
    return n * d;
  }
  is<Equal<InferInput<typeof embed>, string[] | Tensor<"string">>>();
  const _registry: readonly AnyModel[] = [embed, classify, bot, affine, counter, writer, polite];
  function _narrow(t: AnyTensor) {
    if (t.dtype === "float32") is<Equal<typeof t.data, Float32Array>>();
  }
}
