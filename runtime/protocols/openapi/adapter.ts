// The OpenAPI document: what the protocols tell of their routes.
import denoJson from "../../../deno.json" with { type: "json" };
import type { AdapterHost, OpenApiPart, ProtocolAdapter } from "../adapter.ts";
import { json, object, operation, TEXT } from "../openapi.ts";

const PATH = "/openapi.json";

const OPENAPI: OpenApiPart = {
  tags: [{ name: "OpenAPI", description: "What there is to call" }],
  paths: {
    [PATH]: {
      get: operation(PATH, { tag: "OpenAPI", summary: "This document", answer: json({ type: "object" }) }),
    },
  },
  schemas: { Error: object({ error: { ...TEXT, description: "What was got, and what was wanted" } }) },
};

/** `GET /openapi.json`. */
export const openapi: ProtocolAdapter = (host) => ({
  http: [{ method: "GET", path: PATH, handle: () => Response.json(documentOf(host)) }],
  openApi: OPENAPI,
});

function documentOf({ openApi }: AdapterHost): object {
  const { paths, schemas, tags } = openApi();
  return {
    openapi: "3.1.0",
    info: {
      title: denoJson.name,
      version: denoJson.version,
      license: { name: denoJson.license, identifier: denoJson.license },
      description:
        "Which functions there are, and what each takes and gives, `/v2` tells. A path that does not exist " +
        "has status 404 and an answer with the `routes` that do; another method of one that does has 405.",
    },
    servers: [{ url: "/" }],
    tags,
    paths,
    components: { schemas },
  };
}
