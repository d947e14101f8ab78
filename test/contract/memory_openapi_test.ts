// The OpenAPI document and the routes, without a socket.
import { defineModel, type OpenApiPart, type ProtocolAdapter } from "tensorlet";
import { assertEquals, assertRejects } from "tensorlet/assert";
import { createTestServer, type TestServer } from "tensorlet/testing";
import { PROTOCOLS } from "../../runtime/protocols/mod.ts";

const echo = defineModel({ predict: (inputs) => inputs });

interface Document {
  readonly openapi: string;
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly tags: readonly string[] }>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
}

async function get<T>(server: TestServer, path: string): Promise<T> {
  return await (await server.fetch(new Request(`http://localhost${path}`))).json();
}

// The console's are its pages' own.
const isPrivate = (route: string) => /^\w+ \/(console\/.*)?$/.test(route);

Deno.test("the OpenAPI document has every route that is meant for others, and no others", async () => {
  await using server = await createTestServer({ echo });
  const { routes } = await get<{ readonly routes: readonly string[] }>(server, "/none");
  const { openapi, paths } = await get<Document>(server, "/openapi.json");
  const described = Object.entries(paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ":$1")}`)
  );
  assertEquals(openapi, "3.1.0");
  assertEquals(described.toSorted(), routes.filter((route) => !isPrivate(route)).toSorted());
});

Deno.test("the OpenAPI document has the schemas and tags that it uses, and no others", async () => {
  await using server = await createTestServer({ echo });
  const document = await get<Document>(server, "/openapi.json");
  const schemas = [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name!);
  const tags = Object.values(document.paths).flatMap((path) => Object.values(path).flatMap(({ tags }) => tags));
  const sorted = (names: Iterable<string>) => [...new Set(names)].toSorted();
  assertEquals(sorted(schemas), sorted(Object.keys(document.components.schemas)));
  assertEquals(sorted(tags), sorted(document.tags.map(({ name }) => name)));
});

Deno.test("a user's adapter has its part in the OpenAPI document, with names of its own", async () => {
  const part: OpenApiPart = {
    paths: { "/mine": { get: { responses: { 200: { $ref: "#/components/schemas/Mine" } } } } },
    schemas: { Mine: { type: "string" } },
  };
  const mine: ProtocolAdapter = () => ({
    http: [{ method: "GET", path: "/mine", handle: () => new Response() }],
    openApi: part,
  });
  await using server = await createTestServer({ echo }, { adapters: [...PROTOCOLS, mine] });
  const { paths, components } = await get<Document>(server, "/openapi.json");
  assertEquals<unknown>([paths["/mine"], components.schemas["Mine"]], [part.paths["/mine"], part.schemas!["Mine"]]);
  const alike: ProtocolAdapter = () => ({ openApi: { paths: {}, schemas: { InferRequest: {} } } });
  await assertRejects(
    () => createTestServer({ echo }, { adapters: [...PROTOCOLS, alike] }),
    TypeError,
    'Cannot join the OpenAPI parts of protocols "oip_v2" and "alike": both have schema "InferRequest"',
  );
});
