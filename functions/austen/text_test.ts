import { assertEquals } from "tensorlet/assert";
import { toText } from "./text.ts";

/** Pieces of a text whose bytes come in tokens of these lengths. */
function pieces(text: string, ...lengths: number[]): Promise<string[]> {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  const tokens = lengths.map((length) => bytes.slice(at, at += length));
  return Array.fromAsync(toText(tokens.keys(), { bytes: (token) => tokens[token]! }));
}

Deno.test("toText() gives a piece for each token", async () => {
  assertEquals(await pieces("Emma was", 4, 1, 3), ["Emma", " ", "was"]);
});

Deno.test("toText() holds back a character until it is complete", async () => {
  assertEquals(await pieces("a\u{1f600}b\u00e9", 1, 1, 1, 1, 2, 1, 1), ["a", "\u{1f600}b", "\u00e9"]);
});

Deno.test("toText() drops half a character at the end", async () => {
  assertEquals(await pieces("a\u00e9", 1, 1), ["a"]);
});

Deno.test("toText() keeps a byte order mark", async () => {
  assertEquals(await pieces("\ufeffa", 4), ["\ufeffa"]);
});
