import { assertEquals } from "tensorlet/assert";
import { assertFails } from "../../../test/harness/calls.ts";
import { tensor } from "../../core/tensor.ts";
import { tensorFromJson, tensorToJson } from "./tensor.ts";

Deno.test("tensors of the console keep 64-bit integers, and floats short", () => {
  const large = tensor("int64", [2n ** 53n + 1n]);
  assertEquals(tensorFromJson(tensorToJson(large), "x"), large);
  assertEquals(tensorToJson(tensor("float32", [0.1, NaN])).data, [0.1, "NaN"]);
});

Deno.test("tensors of the console come as bytes too", () => {
  assertEquals(
    tensorFromJson({ dtype: "float32", shape: [1], base64: "AACAPw==" }, "x"),
    tensor("float32", [1]),
  );
});

Deno.test("tensors of the console that are none are refused by name", async () => {
  await assertFails("invalid_argument", "Cannot read x: element 0 is 300, wanted uint8", () => {
    tensorFromJson({ dtype: "uint8", shape: [1], data: [300] }, "x");
  });
  await assertFails("invalid_argument", "1 elements do not fill shape [2]", () => {
    tensorFromJson({ dtype: "uint8", shape: [2], data: [3] }, "x");
  });
});
