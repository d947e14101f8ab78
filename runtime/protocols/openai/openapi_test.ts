import { assert, assertEquals } from "tensorlet/assert";
import type { AdapterHost } from "../adapter.ts";
import { openai } from "./adapter.ts";
import { OPENAPI } from "./openapi.ts";

Deno.test("the OpenAPI document describes every route but its own", () => {
  const routes = openai({} as AdapterHost).http!.map(({ method, path }) => `${method} ${path}`);
  const described = Object.entries(OPENAPI.paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ":$1")}`)
  );
  assertEquals([...described, "GET /v1/openapi.json"].toSorted(), routes.toSorted());
});

Deno.test("the OpenAPI document has the schemas that it refers to, and no others", () => {
  const used = new Set(
    [...JSON.stringify(OPENAPI).matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name!),
  );
  assertEquals([...used].toSorted(), Object.keys(OPENAPI.components.schemas).toSorted());
  assert(used.size > 0);
});
