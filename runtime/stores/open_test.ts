import { assertEquals, assertStringIncludes, assertThrows } from "tensorlet/assert";
import { parseStoreChoice } from "./open.ts";

Deno.test("parseStoreChoice() reads what a store is called", () => {
  assertEquals(parseStoreChoice("memory"), { kind: "memory" });
  assertEquals(parseStoreChoice("kv:data/sessions.db"), { kind: "kv", path: "data/sessions.db" });
  for (
    const url of [
      "redis://localhost",
      "redis://127.0.0.1:6379/2",
      "rediss://user:secret@redis.example:6380/",
      "redis://[::1]:1",
    ]
  ) {
    assertEquals(parseStoreChoice(url), { kind: "redis", url });
  }
});

for (
  const text of [
    "",
    "disk",
    "kv:",
    "kv",
    "redis:",
    "redis://",
    "redis://host/db",
    "redis://host:port",
    "redis://host:99999",
    "http://host",
    "redis://host?db=1",
  ]
) {
  Deno.test(`parseStoreChoice() refuses ${JSON.stringify(text)}`, () => {
    const { message } = assertThrows(() => parseStoreChoice(text), RangeError);
    assertStringIncludes(message, `it is ${JSON.stringify(text)}, wanted memory, kv:PATH or redis://HOST:PORT[/DB]`);
  });
}

for (
  const text of [
    "redis://:secret@host:x",
    "redis://user:secret@host/db",
    "redis://user:se/cret@secret@host",
    "redis:secret@host",
    "user:secret@host",
  ]
) {
  Deno.test(`parseStoreChoice() does not repeat the password of ${JSON.stringify(text)}`, () => {
    const { message } = assertThrows(() => parseStoreChoice(text), RangeError);
    assertEquals([message.includes("cret"), message.includes("ret@"), message.includes("host")], [false, false, true]);
  });
}
