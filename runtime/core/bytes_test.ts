import { assertEquals } from "tensorlet/assert";
import { concatBytes, concatInto, freeBytes, lengthOf } from "./bytes.ts";

Deno.test("concatBytes() puts parts end to end, and leaves room behind them", () => {
  const whole = Uint8Array.of(1, 2, 3, 4);
  const parts = [whole.subarray(1, 3), new Uint8Array(0), Uint8Array.of(9)];
  assertEquals([...concatBytes(parts)], [2, 3, 9]);
  assertEquals([...concatInto(new Uint8Array(5), parts)], [2, 3, 9, 0, 0]);
  assertEquals([lengthOf(parts), concatBytes([]).length], [3, 0]);
  concatBytes([whole])[0] = 7;
  assertEquals(whole[0], 1); // always a copy
});

Deno.test("freeBytes() frees what has its buffer for itself, and leaves parts of one alone", () => {
  const own = new Uint8Array(100_000);
  freeBytes(own);
  assertEquals([own.length, own.buffer.detached], [0, true]);
  const buffer = new ArrayBuffer(100_000);
  for (const bytes of [new Uint8Array(buffer, 0, 50_000), new Uint8Array(buffer, 100), new Uint8Array(buffer, 0, 8)]) {
    freeBytes(bytes);
  }
  const small = new Uint8Array(8192);
  freeBytes(small);
  assertEquals([buffer.detached, small.buffer.detached], [false, false]);
});
