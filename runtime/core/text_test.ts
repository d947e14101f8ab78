import { assert, assertEquals } from "tensorlet/assert";
import { PieceJoiner } from "./text.ts";

const [HIGH, LOW] = ["😀"[0]!, "😀"[1]!];

function join(...pieces: readonly string[]): string[] {
  const joiner = new PieceJoiner();
  const sent = pieces.map((piece, i) => joiner.push(piece, i === pieces.length - 1));
  return joiner.rest() === "" ? sent : [...sent, joiner.rest()];
}

Deno.test("PieceJoiner lets whole pieces through at once", () => {
  assertEquals(join("a", "", "😀", "é"), ["a", "", "😀", "é"]);
});

Deno.test("PieceJoiner holds half a character back for the next piece", () => {
  assertEquals(join(`a${HIGH}`, `${LOW}b`), ["a", "😀b"]);
  assertEquals(join(HIGH, "", LOW, "."), ["", "", "😀", "."]);
});

Deno.test("PieceJoiner replaces a half that never finds its other", () => {
  assertEquals(join(HIGH, "a"), ["", "\ufffda"]);
  assertEquals(join(LOW, "a"), ["\ufffd", "a"]);
  assertEquals(join("a", HIGH), ["a", "\ufffd"]);
});

Deno.test("PieceJoiner gives what is left at the end", () => {
  const joiner = new PieceJoiner();
  assertEquals(joiner.push(`a${HIGH}`, false), "a");
  assertEquals(joiner.rest(), "\ufffd");
});

Deno.test("PieceJoiner gives valid Unicode only, and all of it", () => {
  const text = "x😀y😀😀";
  const pieces = [...Array(text.length).keys()].map((i) => text[i]!);
  const sent = join(...pieces);
  assert(sent.every((piece) => piece.isWellFormed()));
  assertEquals(sent.join(""), text);
});
