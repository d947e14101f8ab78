import { assertEquals } from "tensorlet/assert";
import { visible } from "./terminal.ts";

Deno.test("visible() shows what a terminal would obey, and leaves text alone", () => {
  assertEquals(visible("a\tb\r\nc é😀\n"), "a\tb\nc é😀\n");
  assertEquals(visible("\x1b]0;title\x07\x1b[2J"), "\\x1b]0;title\\x07\\x1b[2J");
  assertEquals(visible("over\rwritten\b\x00\x7f\x9b31m"), "over\\x0dwritten\\x08\\x00\\x7f\\x9b31m");
  assertEquals(visible("a\u202eb\u2066"), "a\\u202eb\\u2066");
});
