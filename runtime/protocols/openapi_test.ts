import { assertEquals, assertThrows } from "tensorlet/assert";
import type { OpenApiPart } from "./adapter.ts";
import { joinOpenApi } from "./openapi.ts";

const one: OpenApiPart = {
  paths: { "/a": { get: { summary: "one" } } },
  schemas: { A: { type: "string" } },
  tags: [{ name: "One", description: "" }],
};

Deno.test("parts of the OpenAPI document become one", () => {
  const other: OpenApiPart = { paths: { "/a": { post: {} }, "/b": { get: {} } } };
  assertEquals(joinOpenApi([["one", one], ["other", other]]), {
    paths: { "/a": { get: { summary: "one" }, post: {} }, "/b": { get: {} } },
    schemas: { A: { type: "string" } },
    tags: [{ name: "One", description: "" }],
  });
  assertEquals(joinOpenApi([]), { paths: {}, schemas: {}, tags: [] });
});

Deno.test("parts of the OpenAPI document that say the same are told apart by their protocols", () => {
  const clashes: readonly (readonly [what: string, part: OpenApiPart])[] = [
    ["GET /a", { paths: { "/a": { get: {} } } }],
    ['schema "A"', { paths: {}, schemas: { A: {} } }],
    ['tag "One"', { paths: {}, tags: [{ name: "One", description: "" }] }],
  ];
  for (const [what, part] of clashes) {
    assertThrows(
      () => joinOpenApi([["one", one], ["mine", part]]),
      TypeError,
      `Cannot join the OpenAPI parts of protocols "one" and "mine": both have ${what}`,
    );
  }
});
