// What a definition's types say to a caller. `deno check` is the test; nothing runs.
import { assertEquals } from "tensorlet/assert";
import { defineModel } from "../core/define.ts";
import { type Tensor, tensor } from "../core/tensor.ts";
import type { Client, ClientOptions, Prediction } from "./types.ts";

const single = defineModel({
  input: { dtype: "float32", shape: [-1, 28] },
  output: { dtype: "int64", shape: [-1] },
  params: { top: { type: "integer", default: 1 }, mode: { type: "string", enum: ["a", "b"] } },
  predict: (x) => new BigInt64Array(x.shape[0]),
});
const named = defineModel({
  input: { image: { dtype: "float32" }, mask: { dtype: "bool", optional: true } },
  output: { scores: { dtype: "float32" }, label: { dtype: "string" } },
  predict: ({ image }) => ({ scores: image.data, label: ["x"] }),
});
const untyped = defineModel({ predict: ([x]) => x! });

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function assertType<T extends true>(): T | undefined {
  return undefined;
}

// Never called: only its types matter.
async function calls(
  ofSingle: Client<typeof single>,
  ofNamed: Client<typeof named>,
  ofUntyped: Client<typeof untyped>,
): Promise<void> {
  const { output } = await ofSingle.predict(tensor("float32", [1], [1, 1]), { params: { mode: "b" } });
  assertType<Equal<typeof output, Tensor<"int64", readonly [-1]>>>();
  await ofSingle.predict(new Float32Array(28));
  // @ts-expect-error: a wrong dtype
  await ofSingle.predict(tensor("float64", [1], [1, 1]));
  // @ts-expect-error: a wrong array
  await ofSingle.predict(new Float64Array(28));
  // @ts-expect-error: an unknown param
  await ofSingle.predict(new Float32Array(28), { params: { tops: 3 } });
  // @ts-expect-error: a value that the param does not take
  await ofSingle.predict(new Float32Array(28), { params: { mode: "c" } });

  const both = await ofNamed.predict({ image: new Float32Array(1) });
  assertType<Equal<typeof both.output.label.data, string[]>>();
  // @ts-expect-error: a wrong name
  await ofNamed.predict({ images: new Float32Array(1) });
  // @ts-expect-error: one that is missing
  await ofNamed.predict({ mask: new Uint8Array(1) });
  // @ts-expect-error: an output that there is not
  both.output.labels;

  const any = await ofUntyped.predict([tensor("int8", [1])], { params: { anything: 1 } });
  assertType<Equal<typeof any, Prediction<typeof untyped>>>();
  any.output.dtype;
  any.outputs[0]?.dtype;
  // @ts-expect-error: without a definition there are no names
  await ofUntyped.predict({ x: tensor("int8", [1]) });

  const tokens: AsyncIterable<string> = ofUntyped.stream(new Float32Array(1));
  // @ts-expect-error: only float32 can be streamed to
  ofUntyped.stream(new Float64Array(1));
  for await (const token of tokens) token.toUpperCase();
}

Deno.test("a client's types follow from the definition", () => {
  const _single: ClientOptions<typeof single> = { model: "single" };
  // @ts-expect-error: several tensors by name need the definition itself
  const _named: ClientOptions<typeof named> = { model: "named" };
  const _defined: ClientOptions<typeof named> = { model: "named", definition: named };
  assertEquals(typeof calls, "function");
});
