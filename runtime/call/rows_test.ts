import { assertEquals, assertRejects } from "tensorlet/assert";
import { tensor } from "../core/tensor.ts";
import { ConfigError } from "../host/error.ts";
import { writeNpy } from "./npy.ts";
import { readRows } from "./rows.ts";

/** The rows of what comes in pieces of `size` bytes. */
async function rows(content: string | Uint8Array, size = 1 << 16): Promise<readonly (readonly unknown[])[]> {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  async function* chunks() {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  }
  const all = await Array.fromAsync(readRows(chunks(), "x"));
  return all.map(({ id, features }) => id === undefined ? [...features] : [id, ...features]);
}

Deno.test("rows are lines of JSON, with ids or without", async () => {
  assertEquals(await rows('[1, 2.5]\n\n{"id": "é", "features": [3, "NaN"]}\n[]'), [[1, 2.5], ["é", 3, NaN], []]);
});

Deno.test("rows are lines of CSV, with names or without", async () => {
  const wanted = [[1, -2.5], [3, NaN]];
  assertEquals(await rows("1,-2.5\r\n3,nan\r\n"), wanted);
  assertEquals(await rows('\ufeffa,"b"\n1, -2.5\n"3",NaN'), wanted);
  assertEquals(await rows("a;b\n1;-2.5\n3;NaN\n"), wanted);
  assertEquals(await rows("1\t-25e-1\n+3.\tnan\n"), wanted);
  assertEquals(await rows("inf\n-inf\n.5\n"), [[Infinity], [-Infinity], [0.5]]);
});

Deno.test("rows are those of a matrix", async () => {
  assertEquals(await rows(writeNpy(tensor("float64", [1, 2, 3, 4, 5, 6], [2, 3]))), [[1, 2, 3], [4, 5, 6]]);
  assertEquals(await rows(writeNpy(tensor("uint8", [1, 2], [2, 1]))), [[1], [2]]);
});

Deno.test("rows are the same in whatever pieces they come", async () => {
  const text = '{"id": "é", "features": [3]}\n[4]\n';
  const file = writeNpy(tensor("float32", [1, 2], [1, 2]));
  for (const size of [1, 2, 5]) {
    assertEquals(await rows(text, size), [["é", 3], [4]]);
    assertEquals(await rows(file, size), [[1, 2]]);
  }
});

Deno.test("nothing has no rows", async () => {
  assertEquals([await rows(""), await rows("\n \n"), await rows("a,b\n")], [[], [], []]);
});

for (
  const [content, message] of [
    ["[1]\n[1, \n", "Cannot read x, line 2 as JSON: unexpected end"],
    ['[1]\n["a"]', 'Cannot read x, line 2: element [0] is "a", wanted a number'],
    ["[[1], [2]]\n3", "Cannot read x, line 1: it has the shape [2,1], wanted [numbers]"],
    ['{"id": 1, "features": [1]}', 'Cannot read x, line 1: wanted [numbers] or {"id"'],
    ['{"features": [1], "label": 3}', "Cannot read x, line 1: wanted"],
    ["[1]\n3", "Cannot read x, line 2: it is 3, wanted [numbers]"],
    ["1,2\n3", "Cannot read x, line 2: it has 1 values, the first line has 2"],
    ["1,2\n3,", 'Cannot read x, line 2: value 2 is "", wanted a number'],
    ["id,1\n3,4", 'Cannot read x, line 1: value 1 is "id", wanted a number'],
    [Uint8Array.of(0x31, 0xff), "Cannot read x: it is no text in UTF-8"],
    [writeNpy(tensor("float32", [1, 2])), "Cannot read the rows of x: its shape is [2], wanted two dims"],
    [writeNpy(tensor("string", ["a"], [1, 1])), 'Cannot read x: element [0][0] is "a"'],
  ] as const
) {
  Deno.test(`${JSON.stringify(content).slice(0, 30)} has a row that is none`, async () => {
    await assertRejects(() => rows(content), ConfigError, message);
  });
}
