import { assertEquals } from "tensorlet/assert";
import { type AnyTensor, tensor } from "../core/tensor.ts";
import { elementsOf, toTensor } from "./elements.ts";
import { formatDocument, formatOutputs, formatTensor } from "./format.ts";
import { parseJson } from "./json.ts";

for (
  const [value, text] of [
    [tensor("float32", [0.1, 12, -0, 1e21, 16777217]), "[0.1,12.0,-0.0,1e+21,16777216.0]"],
    [tensor("float32", [1 / 3, NaN, -Infinity]), '[0.33333334,"NaN","-Infinity"]'],
    [tensor("float64", [0.1, 1 / 3, 5e-324]), "[0.1,0.3333333333333333,5e-324]"],
    [tensor("float16", [0.1, 65504, 6e-8]), "[0.1,65500.0,5.96e-8]"],
    [tensor("bfloat16", Uint16Array.of(0x3dcd, 0x3f80)), "[0.1,1.0]"],
    [tensor("int64", [-9007199254740993n]), "[-9007199254740993]"],
    [tensor("uint64", [2n ** 64n - 1n], []), "18446744073709551615"],
    [tensor("bool", Uint8Array.of(1, 0)), "[true,false]"],
    [tensor("string", ["é😀", 'a"\n\x1b\x9b\u202e']), '["é😀","a\\"\\n\\u001b\\u009b\\u202e"]'],
    [tensor("bytes", [Uint8Array.of(0, 1, 255)]), '["AAH/"]'],
    [tensor("int8", [], [2, 0]), "[[],[]]"],
  ] satisfies readonly (readonly [AnyTensor, string])[]
) {
  Deno.test(`formatTensor() writes ${value.dtype} ${text.slice(0, 20)} so that it can be read again`, () => {
    assertEquals(formatTensor(value), text);
    assertEquals(toTensor(elementsOf(parseJson(text, "x"), "x"), value.dtype, "x"), value);
  });
}

Deno.test("formatTensor() gives the rows of a matrix lines of their own", () => {
  const value = tensor("int8", [1, 2, 3, 4, 5, 6, 7, 8], [2, 2, 2]);
  assertEquals(formatTensor(value, { layout: "lines" }), "[[[1, 2],\n  [3, 4]],\n [[5, 6],\n  [7, 8]]]");
  assertEquals(formatTensor(value, { layout: "line" }), "[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]");
});

Deno.test("formatTensor() shows a large tensor in part where it is asked to", () => {
  const big = tensor("int16", Int16Array.from({ length: 1400 }, (_, i) => i), [2, 700]);
  assertEquals(
    formatTensor(big, { summary: true, layout: "lines" }),
    "[[0, 1, 2, ..., 697, 698, 699],\n [700, 701, 702, ..., 1397, 1398, 1399]]",
  );
  assertEquals(JSON.parse(formatTensor(big)).length, 2);
  assertEquals(formatTensor(tensor("int8", [1, 2, 3, 4, 5, 6, 7]), { summary: true }), "[1,2,3,4,5,6,7]");
});

Deno.test("every float16 is read again from what is written", () => {
  const all = tensor("float16", new Float16Array(Uint16Array.from({ length: 65536 }, (_, i) => i).buffer));
  const again = toTensor(elementsOf(parseJson(formatTensor(all), "x"), "x"), "float16", "x");
  for (const [i, value] of all.data.entries()) {
    if (!Object.is(again.data[i], value)) assertEquals(again.data[i], value);
  }
});

Deno.test("formatDocument() writes what can be sent again, its data flat", () => {
  const outputs = [tensor("int64", [1n, 2n ** 62n], [2, 1]), tensor("float32", [NaN])];
  assertEquals(
    formatDocument({ outputs, latencyMs: 3, requestId: 'r"1' }),
    '{"outputs":[{"dtype":"int64","shape":[2,1],"data":[1,4611686018427387904]},' +
      '{"dtype":"float32","shape":[1],"data":["NaN"]}],"latency_ms":3,"request_id":"r\\"1"}',
  );
});

Deno.test("formatOutputs() writes the values of one tensor, and several as an object", () => {
  const [a, b] = [tensor("int8", [1, 2], [2, 1]), tensor("bool", Uint8Array.of(1))];
  assertEquals(formatOutputs([a], { layout: "lines" }), "[[1],\n [2]]");
  assertEquals(formatOutputs([a, b], { layout: "lines" }), '{"0": [[1], [2]],\n "1": [true]}');
  assertEquals(formatOutputs([a, b], { layout: "line" }), '{"0": [[1], [2]], "1": [true]}');
  assertEquals(formatOutputs([], {}), "{}");
});
