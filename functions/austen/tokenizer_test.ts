import { assertEquals } from "tensorlet/assert";
import { createTokenizer } from "./tokenizer.ts";
import tokenizerData from "./tokenizer.json" with { type: "json" };

const tokenizer = createTokenizer(tokenizerData);

function decode(tokens: readonly number[]): string {
  return new TextDecoder().decode(Uint8Array.from(tokens.flatMap((token) => [...tokenizer.bytes(token)])));
}

Deno.test("encode() keeps every character that the vocabulary has", () => {
  const printable = String.fromCharCode(...Array.from({ length: 95 }, (_, i) => 32 + i));
  for (const text of [printable, '"My dear Mr. Bennet,"\nsaid his lady--1813;  well!', "<|endoftext|>", ""]) {
    assertEquals(decode(tokenizer.encode(text)), text);
  }
});

// What the program that trained the tokenizer makes of it.
Deno.test("encode() merges pairs in the order of their training", () => {
  const tokens = tokenizer.encode("It is a truth universally acknowledged");
  const words = ["It", " is", " a", " tr", "ut", "h", " un", "i", "ver", "s", "ally", " ac", "k", "now", "led", "ged"];
  assertEquals(tokens.map((token) => decode([token])), words);
});

Deno.test("encode() merges a pair wherever it stands in a word", () => {
  const pair = createTokenizer({ vocab: [[97], [98], [0], [97, 98]], eot: 2, pattern: "\\S+", merges: [[0, 1]] });
  assertEquals(pair.encode("ababb"), [3, 3, 1]);
});

Deno.test("encode() leaves out characters that the vocabulary does not have", () => {
  assertEquals(decode(tokenizer.encode("caf\u00e9 \u{1f600}\ud800 ol\u00e9!")), "caf  ol!");
  assertEquals(tokenizer.encode("Emma \u201cwas"), tokenizer.encode("Emma was")); // before words are told apart
  assertEquals(tokenizer.encode("\u4f60\u597d\r\t"), []);
});

Deno.test("encodeEnd() gives the last tokens", () => {
  const text = "She had been a very fine young woman. ".repeat(100);
  assertEquals(tokenizer.encodeEnd(text, 50), tokenizer.encode(text).slice(-50));
  assertEquals(tokenizer.encodeEnd("short", 50), tokenizer.encode("short"));
});

Deno.test("encodeEnd() reads no more than the tokens can take", () => {
  // The longest token has 13 bytes: 4 of them are looked for in the last 52 characters.
  assertEquals(tokenizer.encodeEnd(`Emma${"\u4f60".repeat(51)}`, 4), tokenizer.encode("a"));
  assertEquals(tokenizer.encodeEnd(`Emma${"\u4f60".repeat(52)}`, 4), []);
});
