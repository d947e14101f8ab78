import { assertEquals } from "tensorlet/assert";
import { rowsOf, split, stack, stackKey } from "./stack.ts";
import { type AnyTensor, type NamedTensors, tensor } from "./tensor.ts";

const named = (x: AnyTensor, y: AnyTensor): NamedTensors => ({ x, y });
const int64 = (rows: number, ...values: readonly bigint[]) => tensor("int64", values, [rows]) as AnyTensor;
const grid = (rows: number, ...values: readonly number[]) => tensor("float32", values, [rows, 2]) as AnyTensor;

Deno.test("stack() puts row behind row, and split() takes them apart again", () => {
  const inputs = [
    named(grid(1, 1, 2), int64(1, 1n)),
    named(grid(0), int64(0)),
    named(grid(2, 3, 4, 5, 6), int64(2, 2n, 3n)),
  ];
  const stacked = stack(inputs);
  assertEquals(stacked, named(grid(3, 1, 2, 3, 4, 5, 6), int64(3, 1n, 2n, 3n)));
  assertEquals(split(stacked, [1, 0, 2]), inputs);
});

Deno.test("stack() and split() carry every kind of element", () => {
  const texts = (...data: readonly string[]) => ({ x: tensor("string", data as string[], [data.length]) as AnyTensor });
  assertEquals(stack([texts("a"), texts("b", "c")]), texts("a", "b", "c"));
  assertEquals(split(texts("a", "b", "c"), [2, 1]), [texts("a", "b"), texts("c")]);
  const bits = (...data: readonly number[]) => ({
    x: tensor("bool", Uint8Array.from(data), [data.length]) as AnyTensor,
  });
  assertEquals(split(stack([bits(1), bits(0, 1)]), [1, 2]), [bits(1), bits(0, 1)]);
});

Deno.test("split() gives nothing where the rows are not those of the requests", () => {
  assertEquals(split({ x: grid(3, 1, 2, 3, 4, 5, 6) }, [1, 1]), undefined);
  assertEquals(split({ x: tensor("float32", [1], []) as AnyTensor }, [1]), undefined);
});

Deno.test("stackKey() and rowsOf() look at all dims but the first, and at the first", () => {
  const keyOf = (input: NamedTensors, params = {}) => stackKey({ input, params });
  assertEquals(keyOf({ x: grid(1, 1, 2) }), keyOf({ x: grid(0) }));
  assertEquals(keyOf({ x: grid(1, 1, 2) }) === keyOf({ x: int64(1, 1n) }), false);
  assertEquals(keyOf({ x: grid(1, 1, 2) }) === keyOf({ y: grid(1, 1, 2) }), false);
  assertEquals(keyOf({ x: grid(0) }, { top: 1 }) === keyOf({ x: grid(0) }, { top: 2 }), false);
  assertEquals([rowsOf(named(grid(1, 1, 2), int64(1, 1n))), rowsOf(named(grid(1, 1, 2), int64(0)))], [1, undefined]);
  assertEquals([rowsOf({}), rowsOf({ x: tensor("float32", [1], []) as AnyTensor })], [undefined, undefined]);
});
