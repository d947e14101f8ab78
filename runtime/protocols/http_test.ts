import { assertEquals } from "tensorlet/assert";
import { assertFails } from "../../test/harness/calls.ts";
import { parseJson } from "./http.ts";

const parse = (text: string) => parseJson(new TextEncoder().encode(text));

Deno.test("parseJson() bounds how deep a body is nested, whatever its texts hold", async () => {
  const nested = (depth: number) => '{"a":['.repeat(depth / 2) + "]}".repeat(depth / 2);
  parse(nested(100));
  await assertFails("invalid_argument", "nested more than 100 deep", () => parse(nested(102)));
  const text = `${"[{".repeat(200)}"\\`;
  assertEquals(parse(JSON.stringify([text, "\\", "]"])), [text, "\\", "]"]);
  assertEquals(parse(`[${"[],{},".repeat(200)}0]`), [...Array(200).fill([[], {}]).flat(), 0]);
});

Deno.test("parseJson() says what is wrong with a body", async () => {
  await assertFails("invalid_argument", "Cannot read the body as JSON: Unterminated string", () => parse('{"a'));
  await assertFails("invalid_argument", "Cannot read the body as JSON: ", () => parse(']"'));
  await assertFails("invalid_argument", "it is not UTF-8", () => parseJson(Uint8Array.of(34, 255, 34)));
});
