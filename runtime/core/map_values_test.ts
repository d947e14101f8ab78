import { assertEquals, assertRejects } from "tensorlet/assert";
import { mapValues } from "./map_values.ts";

function createSource() {
  const log: string[] = [];
  async function* values(): AsyncGenerator<number, void, undefined> {
    try {
      for (let i = 1; i <= 3; i++) {
        log.push(`${i}`);
        yield i;
      }
    } finally {
      log.push("ended");
    }
  }
  return { log, values: values() };
}

Deno.test("mapValues() maps each value as it is read", async () => {
  const { log, values } = createSource();
  const mapped = mapValues(values, (value) => value * 10);
  assertEquals([(await mapped.next()).value, log], [10, ["1"]]);
  assertEquals(await Array.fromAsync(mapped), [20, 30]);
  assertEquals(log.at(-1), "ended");
});

Deno.test("mapValues() ends its source where the reader leaves, or a value cannot be mapped", async () => {
  const left = createSource();
  for await (const _ of mapValues(left.values, String)) break;
  assertEquals(left.log, ["1", "ended"]);
  const failed = createSource();
  const mapped = mapValues(failed.values, () => {
    throw new RangeError("no");
  });
  await assertRejects(() => Array.fromAsync(mapped), RangeError, "no");
  assertEquals(failed.log, ["1", "ended"]);
});
