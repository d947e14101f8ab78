import { assertEquals } from "tensorlet/assert";
import { encodeTensor } from "../../inference/tensor.ts";
import { tensorFromJson } from "../tensor.ts";
import { encode } from "./wire.js";

const ELEMENTS = {
  bool: [true, false],
  int8: [-1, 127],
  int16: [-2, 300],
  int32: [-3, 70_000],
  int64: ["-9223372036854775808", "9007199254740993"],
  uint8: [0, 255],
  uint16: [0, 65_535],
  uint32: [0, 4_294_967_295],
  uint64: ["0", "18446744073709551615"],
  float16: [0.5, -2],
  bfloat16: [0.5, -2],
  float32: [0.1, "NaN"],
  float64: [0.1, "-Infinity"],
  string: ["a", "süß😀"],
  bytes: ["AQI=", "/w=="],
} as const;

Deno.test("the console's code has tensors as the wire does", () => {
  for (const [dtype, data] of Object.entries(ELEMENTS)) {
    const tensor = { dtype: dtype as keyof typeof ELEMENTS, shape: [2], data: [...data] };
    const { dtype: name, base64, byteLength } = encode({ ...tensor, count: 2, elements: data });
    const wanted = encodeTensor(tensorFromJson(tensor, "x"));
    assertEquals([name, base64], [wanted.dtype, wanted.data.toBase64()], dtype);
    assertEquals(byteLength, wanted.data.length);
  }
});
