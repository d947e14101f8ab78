import { assertEquals, assertThrows } from "tensorlet/assert";
import type { DType } from "../core/dtype.ts";
import { ModelError } from "../core/error.ts";
import { type AnyTensor, tensor } from "../core/tensor.ts";
import { castTensor, elementsOf, guessDType, toTensor } from "./elements.ts";
import { parseJson } from "./json.ts";

function read(text: string, dtype?: DType): AnyTensor {
  const elements = elementsOf(parseJson(text, "input 0"), "input 0");
  return toTensor(elements, dtype ?? guessDType(elements), "input 0");
}

Deno.test("nested arrays are tensors, whole numbers exact ones", () => {
  assertEquals(read("[1, 9007199254740993]"), tensor("int64", [1n, 9007199254740993n]));
  assertEquals(read("[[1.0, 2], [3, 4]]"), tensor("float32", [1, 2, 3, 4], [2, 2]));
  assertEquals(read("7"), tensor("int64", [7n], []));
  assertEquals(read("-0"), tensor("float32", [-0], []));
  assertEquals(read("[[true], [false]]"), tensor("bool", Uint8Array.of(1, 0), [2, 1]));
  assertEquals(read('["a", "NaN"]'), tensor("string", ["a", "NaN"]));
  assertEquals(read('[1, "NaN", "-Infinity"]'), tensor("float32", [1, NaN, -Infinity]));
  assertEquals([read("[]").shape, read("[[], []]").shape, read("[]").dtype], [[0], [2, 0], "float32"]);
});

Deno.test("a dtype that is named is the one that is sent", () => {
  assertEquals(read("[1, 2]", "float64"), tensor("float64", [1, 2]));
  assertEquals(read("[1.0, 255]", "uint8"), tensor("uint8", [1, 255]));
  assertEquals(read("[18446744073709551615]", "uint64"), tensor("uint64", [2n ** 64n - 1n]));
  assertEquals(read("[0, 1, true]", "bool"), tensor("bool", Uint8Array.of(0, 1, 1)));
  assertEquals(read("[1, -2.5]", "bfloat16"), tensor("bfloat16", Uint16Array.of(0x3f80, 0xc020)));
  assertEquals(read('["AAH/"]', "bytes"), tensor("bytes", [Uint8Array.of(0, 1, 255)]));
  assertEquals(read('["NaN"]', "float16"), tensor("float16", [NaN]));
});

for (
  const [text, dtype, message] of [
    ["[[1, 2], [3]]", undefined, "element [1] is an array of 1, wanted an array of 2, as before it"],
    ["[[1, 2], 3]", undefined, "element [1] is 3, wanted an array of 2, as before it"],
    ["[1, [2]]", undefined, "element [1] is an array of 1, wanted a number, a text or a boolean"],
    ["[1, null]", undefined, "element [1] is null, wanted a number, a text or a boolean"],
    ["[[1, {}]]", undefined, "element [0][1] is an object, wanted"],
    ["null", undefined, "it is null, wanted"],
    ['[1, "b"]', undefined, 'element [1] is "b", wanted a number that float32 can hold, "NaN"'],
    ["[true, 2]", undefined, "element [1] is 2, wanted true, false, 1 or 0 (bool)"],
    ["[[0, 1], [2, 256]]", "uint8", "element [1][1] is 256, wanted a whole number from 0 to 255 (uint8)"],
    ["[0.5]", "int64", "element [0] is 0.5, wanted a whole number from -9223372036854775808 to"],
    ["[70000]", "float16", "element [0] is 70000, wanted a number that float16 can hold"],
    ["[1e39]", "bfloat16", "element [0] is 1e+39, wanted a number that bfloat16 can hold"],
    ["3", "string", "it is 3, wanted a text (string)"],
    ['["*"]', "bytes", 'element [0] is "*", wanted a text in base64 (bytes)'],
  ] as const
) {
  Deno.test(`${text} is refused${dtype ? ` as ${dtype}` : ""}`, () => {
    const error = assertThrows(() => read(text, dtype), ModelError, `Cannot read input 0: ${message}`);
    assertEquals(error.code, "invalid_argument");
  });
}

Deno.test("castTensor() keeps values and shape, and refuses what would change", () => {
  const doubles = tensor("float64", [0.1, 2], [2, 1]);
  assertEquals(castTensor(doubles, "float32", "x"), tensor("float32", [0.1, 2], [2, 1]));
  assertEquals(castTensor(doubles, "float64", "x"), doubles);
  assertEquals(castTensor(tensor("bool", Uint8Array.of(1, 0)), "float32", "x"), tensor("float32", [1, 0]));
  assertEquals(castTensor(tensor("bfloat16", Uint16Array.of(0x3f80)), "int8", "x"), tensor("int8", [1]));
  assertThrows(() => castTensor(doubles, "int64", "x"), ModelError, "element [0][0] is 0.1, wanted a whole number");
  assertThrows(() => castTensor(tensor("bytes", [Uint8Array.of(1)]), "int8", "x"), ModelError, "is 1 bytes");
});

for (
  const [text, message] of [
    ["[1,x]", "unexpected token 'x'"],
    ["[1", "expected ',' or ']' after array element at position 2"],
    ["", "unexpected end of JSON input"],
  ] as const
) {
  Deno.test(`parseJson() says what is wrong with ${JSON.stringify(text)} in one line`, () => {
    const error = assertThrows(() => parseJson(text, "x.json"), ModelError, `Cannot read x.json as JSON: ${message}`);
    assertEquals(error.message.includes("\n"), false);
  });
}
