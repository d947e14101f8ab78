import { assertEquals } from "tensorlet/assert";
import { StopScanner } from "./stop.ts";

/** What leaves with each piece, then what is left at the end, then whether a stop text came. */
function scan(stops: readonly string[], ...pieces: readonly string[]): readonly [...string[], boolean] {
  const scanner = new StopScanner(stops);
  return [...pieces.map((piece) => scanner.push(piece)), scanner.rest(), scanner.found];
}

Deno.test("StopScanner lets everything through where there is nothing to look for", () => {
  assertEquals(scan([], "a", "", "b"), ["a", "", "b", "", false]);
});

Deno.test("StopScanner ends the text before a stop text, wherever it is cut", () => {
  assertEquals(scan(["STOP"], "one STOP two", "three"), ["one ", "", "", true]);
  assertEquals(scan(["STOP"], "one S", "T", "OP two"), ["one ", "", "", "", true]);
  assertEquals(scan(["b"], "abc"), ["a", "", true]);
});

Deno.test("StopScanner gives back what only looked like the start of a stop text", () => {
  assertEquals(scan(["STOP"], "ST", "ART"), ["", "START", "", false]);
  assertEquals(scan(["STOP"], "a ST"), ["a ", "ST", false]);
  assertEquals(scan(["aab"], "a", "a", "a", "b"), ["", "", "a", "", "", true]);
  assertEquals(scan(["\n\n"], "a\n", "b\n", "\nc"), ["a", "\nb", "", "", true]);
});

Deno.test("StopScanner takes the first of several stop texts, and holds back for the longest", () => {
  assertEquals(scan(["two", "one"], "one two"), ["", "", true]);
  assertEquals(scan(["xyz", "y!"], "xy", "?"), ["", "xy?", "", false]);
  assertEquals(scan(["abcde", "bc"], "ab", "c"), ["", "a", "", true]);
});

Deno.test("StopScanner finds characters beyond 16 bits", () => {
  assertEquals(scan(["\u{1f600}!"], "a\u{1f600}", "!"), ["a", "", "", true]);
  assertEquals(scan(["\u{1f600}!"], "\u{1f601}"), ["\u{1f601}", "", false]);
});
