import { assertEquals } from "tensorlet/assert";
import { ARRAY_TYPES, type DType, DTYPES, ELEMENT_BYTES, isDataOf, isDType, isFixed } from "./dtype.ts";

Deno.test("DTYPES lists the 15 dtypes once each", () => {
  assertEquals(
    DTYPES.join(" "),
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 string bytes",
  );
});

Deno.test("ELEMENT_BYTES is what the dtype's array takes per element", () => {
  for (const dtype of DTYPES.filter(isFixed)) assertEquals(ARRAY_TYPES[dtype].BYTES_PER_ELEMENT, ELEMENT_BYTES[dtype]);
});

Deno.test("isDType() knows names only, not what objects inherit", () => {
  for (const dtype of DTYPES) assertEquals(isDType(dtype), true);
  for (const other of ["Float32", "f4", "any", "", "constructor", "__proto__", 4, undefined, null]) {
    assertEquals(isDType(other), false, `${other}`);
  }
});

Deno.test("isFixed() is false for string and bytes only", () => {
  assertEquals(DTYPES.filter((dtype) => !isFixed(dtype)), ["string", "bytes"]);
});

Deno.test("isDataOf() wants the dtype's own array", () => {
  const fitting: [DType, unknown][] = [
    ["bool", new Uint8Array(1)],
    ["bfloat16", new Uint16Array(1)],
    ["float16", new Float16Array(1)],
    ["int64", new BigInt64Array(1)],
    ["string", []],
    ["string", ["a", ""]],
    ["bytes", [new Uint8Array(1)]],
  ];
  for (const [dtype, data] of fitting) assertEquals(isDataOf(dtype, data), true, dtype);
  const other: [DType, unknown][] = [
    ["float32", new Float64Array(1)],
    ["float32", [1]],
    ["uint8", new Int8Array(1)],
    ["int64", new BigUint64Array(1)],
    ["string", ["a", 1]],
    ["string", "a"],
    ["bytes", ["a"]],
    ["bytes", new Uint8Array(1)],
    ["float32", undefined],
    ["float" as DType, new Float32Array(1)],
    ["constructor" as DType, {}],
  ];
  for (const [dtype, data] of other) assertEquals(isDataOf(dtype, data), false, dtype);
});
