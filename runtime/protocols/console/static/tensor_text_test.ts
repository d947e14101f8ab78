import { assertEquals, assertThrows } from "tensorlet/assert";
import { formatTensor, parseTensor, sampleText } from "./tensor_text.js";

const untyped = { name: "0", dtype: "any" } as const;
const parse = (text: string, dtype: "float32" | "int64" = "float32") => parseTensor(text, untyped, dtype, "input");

Deno.test("the console reads nested JSON with its shape, and 64-bit integers exactly", () => {
  assertEquals(parse("[[1, 2], [3, 4]]"), { dtype: "float32", shape: [2, 2], data: [1, 2, 3, 4] });
  assertEquals(parse("7"), { dtype: "float32", shape: [], data: [7] });
  assertEquals(parse("[]"), { dtype: "float32", shape: [0], data: [] });
  assertEquals(parse("[9007199254740993]", "int64").data, ["9007199254740993"]);
});

Deno.test("the console refuses what is no tensor", () => {
  assertThrows(() => parse("[1,"), Error, "wanted a tensor in JSON");
  for (const text of ["[[1], [2, 3]]", "[1, [2]]", "[[1], 2]"]) {
    assertThrows(() => parse(text), Error, "not of the same length");
  }
});

Deno.test("the console takes one text as it is", () => {
  const spec = { name: "text", dtype: "string", shape: [-1] } as const;
  assertEquals(parseTensor("[not JSON", spec, "string", "text"), { dtype: "string", shape: [1], data: ["[not JSON"] });
});

Deno.test("what the console offers first is what it reads", () => {
  for (const shape of [[-1, 3], [2, 2], [1]]) {
    const spec = { name: "x", dtype: "float32", shape } as const;
    assertEquals(parseTensor(sampleText(spec), spec, "float32", "x").shape, shape.map((dim) => Math.abs(dim)));
  }
  assertEquals(sampleText({ name: "x", dtype: "float32", shape: [1, 224, 224, 3] }), "");
});

Deno.test("the console shows a row a line, and no more than can be read", () => {
  assertEquals(formatTensor({ dtype: "int8", shape: [2, 2], data: [1, 2, 3, 4] }), "[[1, 2],\n [3, 4]]");
  assertEquals(
    formatTensor({ dtype: "int8", shape: [5000], data: Array(5000).fill(0) }).endsWith("… 5000 in all"),
    true,
  );
});
