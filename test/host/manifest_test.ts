import { assertEquals, assertThrows } from "tensorlet/assert";
import { ConfigError } from "../../runtime/host/error.ts";
import { parseManifest } from "../../runtime/host/manifest.ts";

const parse = (value: unknown) => parseManifest(JSON.stringify(value), "functions.json", ["digits", "austen"]);

Deno.test("parseManifest() lets a function's own settings win over the default for all", () => {
  const manifest = parse({ "*": { warm: true }, digits: { warm: false } });
  assertEquals([manifest.settingsOf("digits").warm, manifest.settingsOf("austen").warm], [false, true]);
  assertEquals(parse({}).settingsOf("digits").warm, false);
});

Deno.test("parseManifest() names the fields that have no effect yet", () => {
  assertEquals(parse({ digits: { concurrency: 2, warm: true } }).ignored, ['"concurrency" of "digits"']);
});

for (
  const [value, text] of [
    [{ digit: {} }, 'no function "digit"; did you mean "digits"?'],
    [{ digits: { wram: true } }, 'no field "wram"; did you mean "warm"?'],
    [{ digits: { warm: "yes" } }, '"warm" of "digits" is "yes", wanted true or false'],
    [{ digits: 1 }, "wanted an object"],
    [[], "wanted an object"],
  ] as const
) {
  Deno.test(`parseManifest() refuses ${JSON.stringify(value)}`, () => {
    assertThrows(() => parse(value), ConfigError, text);
  });
}

Deno.test("parseManifest() refuses what is no JSON, naming the file", () => {
  assertThrows(() => parseManifest("{", "functions.json", []), ConfigError, "functions.json");
});
