import { assert, assertEquals, assertStrictEquals } from "tensorlet/assert";
import { assertFails } from "../../../test/harness/calls.ts";
import { type AnyTensor, bytesOf, tensor } from "../../core/tensor.ts";
import { decodeTensor, encodeTensor } from "./tensor.ts";

const decode = (dtype: string, shape: readonly number[], data: Uint8Array) =>
  decodeTensor({ data, shape, dtype }, 'input "x"');
const utf32 = (...points: readonly number[]) => bytesOf(Uint32Array.from(points));
const latin = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0));

Deno.test("decodeTensor() reads elements, their shape and dtype", () => {
  const data = bytesOf(Float32Array.of(1, 2, 3, 4, 5, 6));
  assertEquals(decode("float32", [2, 3], data), tensor("float32", [1, 2, 3, 4, 5, 6], [2, 3]) as AnyTensor);
});

Deno.test("decodeTensor() remembers how a dtype was spelt where it is not its name", () => {
  assertEquals(decode("<f4", [1], bytesOf(Float32Array.of(1))).sentAs, "<f4");
  assertEquals(decode("FLOAT32", [1], bytesOf(Float32Array.of(1))).sentAs, "FLOAT32");
  assert(!("sentAs" in decode("float32", [1], bytesOf(Float32Array.of(1)))));
});

Deno.test("decodeTensor() reads scalars and empty tensors", () => {
  assertEquals(decode("int64", [], bytesOf(BigInt64Array.of(5n))), tensor("int64", [5n], []) as AnyTensor);
  for (const dtype of ["float64", "bool", "<U4", "|S4"]) {
    const { shape, data } = decode(dtype, [3, 0, 2 ** 31 - 1], new Uint8Array(0));
    assertEquals([shape, data.length], [[3, 0, 2 ** 31 - 1], 0]);
  }
  assertEquals(decode("<U2", [], utf32(104, 105)).data, ["hi"]);
});

Deno.test("decodeTensor() views a large payload where it lies", () => {
  const message = new Uint8Array(16_400);
  const { data } = decode("float32", [4096], message.subarray(16));
  assertStrictEquals((data as Float32Array).buffer, message.buffer);
  const unaligned = decode("float32", [4095], message.subarray(3, 3 + 16_380)).data as Float32Array;
  assert(unaligned.buffer !== message.buffer);
});

Deno.test("decodeTensor() refuses a payload of another length than its shape takes", async () => {
  await assertFails(
    "invalid_argument",
    'Cannot read input "x": shape [2,3] of "<f4" takes 24 bytes, got 20',
    () => decode("<f4", [2, 3], new Uint8Array(20)),
  );
  await assertFails("invalid_argument", 'shape [] of "int8" takes 1 bytes, got 0', () => {
    decode("int8", [], new Uint8Array(0));
  });
  await assertFails("invalid_argument", 'shape [0] of "int8" takes 0 bytes, got 1', () => {
    decode("int8", [0], new Uint8Array(1));
  });
  await assertFails("invalid_argument", 'shape [2] of "<U3" takes 24 bytes, got 12', () => {
    decode("<U3", [2], new Uint8Array(12));
  });
  await assertFails("invalid_argument", "takes more than can be counted bytes, got 0", () => {
    decode("float64", [2 ** 31 - 1, 2 ** 31 - 1, 4], new Uint8Array(0));
  });
});

Deno.test("decodeTensor() refuses negative dims and more than 64 of them", async () => {
  await assertFails("invalid_argument", "shape is [-1,4], wanted at most 64 dims from 0", () => {
    decode("int8", [-1, 4], new Uint8Array(4));
  });
  decode("int8", Array(64).fill(1), new Uint8Array(1));
  const { message } = await assertFails("invalid_argument", "shape is 100000 dims, wanted at most 64", () => {
    decode("int8", Array(100_000).fill(1), new Uint8Array(1));
  });
  assert(message.length < 200);
});

Deno.test("decodeTensor() swaps the bytes of big-endian elements, and not those that were sent", () => {
  const sent = Uint8Array.of(0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0);
  assertEquals(decode(">f4", [2], sent).data, Float32Array.of(1, -2));
  assertEquals(sent[0], 0x3f);
  assertEquals(decode(">i2", [2], Uint8Array.of(1, 2, 255, 254)).data, Int16Array.of(0x102, -2));
  assertEquals(decode(">u8", [1], Uint8Array.of(0, 0, 0, 0, 0, 0, 1, 0)).data, BigUint64Array.of(256n));
  assertEquals(decode(">U2", [1], Uint8Array.of(0, 1, 0xf6, 0, 0, 0, 0, 33)).data, ["😀!"]);
  assertEquals(decode(">i1", [2], Uint8Array.of(1, 2)).data, Int8Array.of(1, 2));
});

Deno.test("decodeTensor() wants 0 or 1 for a bool", async () => {
  assertEquals(decode("?", [3], Uint8Array.of(1, 0, 1)).data, Uint8Array.of(1, 0, 1));
  await assertFails("invalid_argument", 'Cannot read input "x": bool element 2 is 255, wanted 0 or 1', () => {
    decode("bool", [3], Uint8Array.of(1, 0, 255));
  });
});

Deno.test("decodeTensor() reads strings beyond the basic plane, and cuts only the padding at their end", () => {
  assertEquals(decode("<U3", [4], utf32(0x1f600, 97, 0, 0, 0, 0, 0, 98, 0, 0x10ffff, 0xffff, 1)).data, [
    "😀a",
    "",
    "\0b",
    "\u{10ffff}\uffff\u0001",
  ]);
});

Deno.test("decodeTensor() reads strings at any offset", () => {
  const message = new Uint8Array(9);
  message.set(utf32(104, 105), 1);
  assertEquals(decode("<U2", [1], message.subarray(1)).data, ["hi"]);
});

Deno.test("decodeTensor() refuses what is no character, saying which string holds it", async () => {
  for (const point of [0xd800, 0xdfff, 0x110000, 0xffffffff]) {
    await assertFails(
      "invalid_argument",
      `Cannot read input "x": string 1 holds 0x${point.toString(16)}, which is no character`,
      () => decode("<U1", [2], utf32(97, point)),
    );
  }
});

Deno.test("decodeTensor() reads bytes without the padding at their end, as copies", () => {
  const sent = latin("ab\0c\0d\0\0\0");
  const { data } = decode("|S3", [3], sent) as { data: Uint8Array[] };
  assertEquals(data, [latin("ab"), latin("c\0d"), latin("")]);
  sent[0] = 0;
  assertEquals(data[0], latin("ab"));
});

Deno.test("encodeTensor() writes numbers as they are, without a copy", () => {
  const values = Float64Array.of(NaN, -0, Infinity, 5e-324);
  const { dtype, shape, data } = encodeTensor(tensor("float64", values, [2, 2]) as AnyTensor);
  assertEquals([dtype, shape], ["float64", [2, 2]]);
  assertStrictEquals(data.buffer, values.buffer);
  const part = new Int16Array(8).subarray(2, 5);
  assertEquals(encodeTensor(tensor("int16", part) as AnyTensor).data.length, 6);
});

Deno.test("encodeTensor() writes strings as wide as the widest, counted in characters", () => {
  const { dtype, data } = encodeTensor(tensor("string", ["a", "😀!", ""]) as AnyTensor);
  assertEquals([dtype, data], ["<U2", utf32(97, 0, 0x1f600, 33, 0, 0)]);
});

Deno.test("encodeTensor() writes bytes as wide as the widest", () => {
  const { dtype, data } = encodeTensor(tensor("bytes", [latin("a"), latin("bcd")]) as AnyTensor);
  assertEquals([dtype, data], ["|S3", latin("a\0\0bcd")]);
});

Deno.test("encodeTensor() gives strings and bytes a width that NumPy takes when all are empty", () => {
  assertEquals(encodeTensor(tensor("string", ["", ""]) as AnyTensor), { dtype: "<U1", shape: [2], data: utf32(0, 0) });
  assertEquals(encodeTensor(tensor("string", [], [0, 3]) as AnyTensor).dtype, "<U1");
  assertEquals(encodeTensor(tensor("bytes", []) as AnyTensor).dtype, "|S1");
});

Deno.test("encodeTensor() writes half a character as U+FFFD", () => {
  assertEquals(encodeTensor(tensor("string", ["\ud83d"]) as AnyTensor).data, utf32(0xfffd));
});

Deno.test("encodeTensor() writes what decodeTensor() reads", () => {
  const tensors = [
    tensor("int64", [2n ** 63n - 1n, -(2n ** 63n)]),
    tensor("uint64", [2n ** 64n - 1n]),
    tensor("bfloat16", Uint16Array.of(0x7fc1, 0x8000)),
    tensor("float16", [65504, 5.960464477539063e-8]),
    tensor("string", ["Zürich", "北京😀"]),
    tensor("bytes", [latin("a\0b")]),
  ] as AnyTensor[];
  for (const value of tensors) {
    const { sentAs: _, ...decoded } = decodeTensor(encodeTensor(value), "output 0");
    assertEquals(decoded as AnyTensor, value);
  }
});
