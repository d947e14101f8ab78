import { assert, assertEquals, assertStrictEquals, assertThrows } from "tensorlet/assert";
import { assertFails } from "../../test/harness/calls.ts";
import { ARRAY_TYPES, DTYPES, isFixed } from "./dtype.ts";
import { type AnyTensor, bytesOf, elementCount, mapNumeric, tensor, toFloat32, viewBytes } from "./tensor.ts";

Deno.test("elementCount() multiplies dims, a scalar has one element", () => {
  assertEquals(elementCount([]), 1);
  assertEquals(elementCount([2, 3, 4]), 24);
});

Deno.test("elementCount() of a 0 dim is 0, however large the others are", () => {
  assertEquals(elementCount([2 ** 31 - 1, 2 ** 31 - 1, 2 ** 31 - 1, 0]), 0);
});

Deno.test("elementCount() is undefined when the product cannot be counted exactly", () => {
  assertEquals(elementCount([2 ** 31 - 1, 2 ** 31 - 1]), undefined);
  assertEquals(elementCount([2 ** 16, 2 ** 16, 2 ** 16, 2 ** 16]), undefined); // 0 in 64 bits
});

Deno.test("tensor() takes lists and typed arrays, one dim by default", () => {
  const list = tensor("float32", [1, 2.5]);
  assertEquals(list, { dtype: "float32", shape: [2], data: Float32Array.of(1, 2.5) });
  const array = Int32Array.of(1, 2, 3, 4);
  const view = tensor("int32", array, [2, 2]);
  assertStrictEquals(view.data, array);
  assertEquals(view.shape, [2, 2]);
  assertEquals(tensor("uint64", [2n ** 64n - 1n]).data, BigUint64Array.of(2n ** 64n - 1n));
  assertEquals(tensor("string", ["a", "b"]).data, ["a", "b"]);
});

Deno.test("tensor() refuses data of another dtype and of another length than its shape", () => {
  assertThrows(() => tensor("float32", new Float64Array(1) as never), TypeError, 'of dtype "float32"');
  assertThrows(() => tensor("string", [1] as never), TypeError, 'of dtype "string"');
  assertThrows(() => tensor("float32", [1, 2, 3], [2, 2]), RangeError, "3 elements do not fill shape [2,2]");
  assertThrows(() => tensor("float32", [1, 2], []), RangeError, "2 elements do not fill shape []");
});

Deno.test("viewBytes() is a view when a large payload is aligned", () => {
  const message = new Uint8Array(16 + 8192);
  const data = viewBytes("float64", message.subarray(8, 8 + 8192));
  assertStrictEquals(data.buffer, message.buffer);
  assertEquals([data.byteOffset, data.length], [8, 1024]);
});

Deno.test("viewBytes() copies a large payload once when it is not aligned", () => {
  const message = new Uint8Array(16 + 8192);
  message[3] = 1;
  const data = viewBytes("int64", message.subarray(3, 3 + 8192));
  assert(data.buffer !== message.buffer && data.buffer.byteLength === 8192);
  assertEquals(data[0], 1n);
});

Deno.test("viewBytes() moves a very large payload down in its message when it is not aligned", () => {
  for (let at = 8; at < 16; at++) {
    const values = Float64Array.from({ length: 8192 }, (_, i) => at + i);
    const message = new Uint8Array(16 + 65_536);
    message.set(bytesOf(values), at);
    const data = viewBytes("float64", message.subarray(at, at + 65_536));
    assertEquals([data.buffer === message.buffer, data.byteOffset], [true, 8]);
    assertEquals(data, values);
  }
});

Deno.test("viewBytes() copies a small payload, whose buffer may be a pool's", () => {
  const pool = new Uint8Array(16_384);
  const data = viewBytes("uint8", pool.subarray(0, 8191));
  assert(data.buffer !== pool.buffer);
  pool[0] = 1;
  assertEquals(data[0], 0);
});

Deno.test("viewBytes() and bytesOf() are each other's inverse for every dtype", () => {
  const bytes = Uint8Array.from({ length: 64 }, (_, i) => i * 7);
  for (const dtype of DTYPES.filter(isFixed)) {
    const data = viewBytes(dtype, bytes);
    assert(data instanceof ARRAY_TYPES[dtype], dtype);
    assertEquals(bytesOf(data), bytes, dtype);
    assertStrictEquals(bytesOf(data).buffer, data.buffer);
  }
});

Deno.test("viewBytes() keeps NaN payloads, infinities, -0 and subnormals", () => {
  const words = Uint32Array.of(0x7fc01234, 0xffa00001, 0x7f800000, 0xff800000, 0x80000000, 1);
  assertEquals(bytesOf(viewBytes("float32", bytesOf(words))), bytesOf(words));
});

const plusOne = (x: AnyTensor | undefined) => mapNumeric(x, (v) => v + 1, (v) => v + 1n);
const map = (x: AnyTensor, action: (value: number) => number) => mapNumeric(x, action, (v) => v);

Deno.test("mapNumeric() keeps dtype and shape for every numeric dtype", () => {
  for (const dtype of DTYPES.filter((dtype) => isFixed(dtype) && dtype !== "bool")) {
    const ones = dtype === "bfloat16" ? Uint16Array.of(0x3f80) : dtype.endsWith("int64") ? [1n] : [1];
    const twos = dtype === "bfloat16" ? Uint16Array.of(0x4000) : dtype.endsWith("int64") ? [2n] : [2];
    const sum = plusOne(tensor(dtype, ones as never, [1, 1]) as AnyTensor);
    assertEquals(sum, tensor(dtype, twos as never, [1, 1]) as AnyTensor);
  }
});

Deno.test("mapNumeric() does not change its input", () => {
  const x = tensor("float32", [1]);
  plusOne(x);
  assertEquals(x.data, Float32Array.of(1));
});

Deno.test("mapNumeric() keeps 64-bit integers exact", () => {
  assertEquals(plusOne(tensor("int64", [2n ** 53n + 1n])).data, BigInt64Array.of(2n ** 53n + 2n));
  assertEquals(plusOne(tensor("uint64", [2n ** 64n - 2n])).data, BigUint64Array.of(2n ** 64n - 1n));
});

Deno.test("mapNumeric() wraps integers", () => {
  assertEquals(plusOne(tensor("int8", [127])).data, Int8Array.of(-128));
  assertEquals(plusOne(tensor("uint16", [65535])).data, Uint16Array.of(0));
  assertEquals(plusOne(tensor("int32", [2 ** 31 - 1])).data, Int32Array.of(-(2 ** 31)));
  assertEquals(plusOne(tensor("int64", [2n ** 63n - 1n])).data, BigInt64Array.of(-(2n ** 63n)));
  assertEquals(plusOne(tensor("uint64", [2n ** 64n - 1n])).data, BigUint64Array.of(0n));
});

Deno.test("mapNumeric() rounds float32 and float16 once, after the whole computation", () => {
  const third = map(tensor("float32", [1]), (v) => v / 3 * 3e10);
  assertEquals(third.data, Float32Array.of(1e10));
  // Just above the middle of two halfs: by way of float32 it would be a tie and go down.
  const half = map(tensor("float16", [1]), (v) => v + 2 ** -11 + 2 ** -40);
  assertEquals(half.data, Float16Array.of(1 + 2 ** -10));
});

const toBits = (value: number) => (map(tensor("bfloat16", Uint16Array.of(0)), () => value).data as Uint16Array)[0];

Deno.test("mapNumeric() rounds bfloat16 to nearest, ties to even", () => {
  assertEquals(toBits(1), 0x3f80);
  assertEquals(toBits(1 + 2 ** -8), 0x3f80); // a tie: 0x3f80 is even
  assertEquals(toBits(1 + 3 * 2 ** -8), 0x3f82); // a tie: 0x3f81 is odd
  assertEquals(toBits(1 + 2 ** -8 + 2 ** -20), 0x3f81);
  assertEquals(toBits(-1 - 3 * 2 ** -8), 0xbf82);
  assertEquals(toBits(3.4e38), 0x7f80); // rounds up to infinity
  assertEquals([toBits(Infinity), toBits(-Infinity), toBits(1e300), toBits(-0)], [0x7f80, 0xff80, 0x7f80, 0x8000]);
  assertEquals([toBits(1e-300), toBits(-1e-300)], [0, 0x8000]);
});

Deno.test("mapNumeric() rounds bfloat16 once: what float32 cannot hold still breaks a tie", () => {
  assertEquals(toBits(1 + 2 ** -8 + 2 ** -40), 0x3f81);
  assertEquals(toBits(1 + 3 * 2 ** -8 - 2 ** -40), 0x3f81);
  assertEquals(toBits(-1 - 2 ** -8 - 2 ** -40), 0xbf81);
});

Deno.test("mapNumeric() keeps a bfloat16 NaN a NaN, also one whose bits are in the low half", () => {
  const bits = toBits(NaN)!;
  assertEquals([bits & 0x7f80, (bits & 0x7f) !== 0], [0x7f80, true]);
  const same = map(tensor("bfloat16", Uint16Array.of(0xff81)), (v) => v).data as Uint16Array;
  assertEquals([same[0]! & 0x7f80, (same[0]! & 0x7f) !== 0], [0x7f80, true]);
});

Deno.test("mapNumeric() refuses what is not numeric, naming the dtype as it was sent", async () => {
  await assertFails("invalid_argument", "none was sent, 1 is wanted", () => plusOne(undefined));
  await assertFails("invalid_argument", 'of dtype "bool": a numeric', () => plusOne(tensor("bool", [1]) as AnyTensor));
  const text = { ...tensor("string", ["a"]), sentAs: "<U1" } as AnyTensor;
  await assertFails("invalid_argument", 'of dtype "<U1": a numeric dtype is wanted', () => plusOne(text));
  const long = { ...tensor("bytes", []), sentAs: "x".repeat(10_000) } as AnyTensor;
  const error = await assertFails("invalid_argument", "xx…", () => plusOne(long));
  assert(error.message.length < 300);
});

Deno.test("toFloat32() gives a float32 tensor's own data", () => {
  const x = tensor("float32", [1, NaN]);
  assertStrictEquals(toFloat32(x), x.data);
});

Deno.test("toFloat32() converts every numeric dtype", () => {
  for (const dtype of ["int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "float64"] as const) {
    assertEquals(toFloat32(tensor(dtype, [0, 1, 100]) as AnyTensor), Float32Array.of(0, 1, 100));
  }
  assertEquals(toFloat32(tensor("bool", [0, 1])), Float32Array.of(0, 1));
  assertEquals(toFloat32(tensor("bfloat16", Uint16Array.of(0x4049, 0xff80))), Float32Array.of(3.140625, -Infinity));
  assertEquals(toFloat32(tensor("float64", [0.1, 1e300])), Float32Array.of(0.1, Infinity));
});

Deno.test("toFloat32() of a 64-bit integer is the nearest float", () => {
  assertEquals(toFloat32(tensor("int64", [2n ** 53n + 1n, -(2n ** 63n)])), Float32Array.of(2 ** 53, -(2 ** 63)));
  assertEquals(toFloat32(tensor("uint64", [2n ** 24n + 1n, 2n ** 64n - 1n])), Float32Array.of(2 ** 24, 2 ** 64));
});

Deno.test("toFloat32() rounds a 64-bit integer once: what a double cannot hold still breaks a tie", () => {
  const tie = 2n ** 60n + 2n ** 36n;
  assertEquals(toFloat32(tensor("int64", [tie, tie + 1n])), Float32Array.of(2 ** 60, 2 ** 60 + 2 ** 37));
  assertEquals(toFloat32(tensor("int64", [-tie, -tie - 1n])), Float32Array.of(-(2 ** 60), -(2 ** 60) - 2 ** 37));
});

Deno.test("toFloat32() refuses strings and bytes", async () => {
  await assertFails("failed_precondition", 'dtype "string" as float32', () => toFloat32(tensor("string", ["1"])));
  await assertFails("failed_precondition", 'dtype "bytes" as float32', () => toFloat32(tensor("bytes", [])));
});
