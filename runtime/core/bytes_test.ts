import { assertEquals } from "tensorlet/assert";
import { concatBytes, lengthOf } from "./bytes.ts";

Deno.test("concatBytes() puts parts end to end, and leaves room behind them", () => {
  const whole = Uint8Array.of(1, 2, 3, 4);
  const parts = [whole.subarray(1, 3), new Uint8Array(0), Uint8Array.of(9)];
  assertEquals([...concatBytes(parts)], [2, 3, 9]);
  assertEquals([...concatBytes(parts, 2)], [2, 3, 9, 0, 0]);
  assertEquals([lengthOf(parts), concatBytes([]).length], [3, 0]);
  concatBytes([whole])[0] = 7;
  assertEquals(whole[0], 1); // always a copy
});
