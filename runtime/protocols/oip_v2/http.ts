// The Open Inference Protocol over HTTP, with Triton's extensions.
import { ModelError } from "../../core/error.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import type { AdapterHost, HttpContext, HttpRoute } from "../adapter.ts";
import { readJson } from "../http.ts";
import { configTypeName } from "./datatype.ts";
import { entryOf, modelConfig, modelMetadata, SERVER_METADATA } from "./describe.ts";
import { generate, generateStream } from "./generate.ts";
import { badRequest, readInferRequest, readParameters, targetOf } from "./http_request.ts";
import { inferResponse } from "./http_response.ts";
import { infer } from "./infer.ts";
import { isReady, loadModel, repositoryIndex, unloadModel } from "./repository.ts";
import { modelStatistics } from "./statistics.ts";

const MODEL = "/v2/models/:model";
const VERSION = `${MODEL}/versions/:version`;

/** The routes. */
export function createHttpRoutes(host: AdapterHost): readonly HttpRoute[] {
  const { catalog, health } = host;
  const entry = (http: HttpContext) => {
    const { model, version } = targetOf(http);
    return entryOf(catalog, model, version);
  };
  const ready = (name: "live" | "ready", isSo: boolean, rest = {}) =>
    Response.json({ ...rest, [name]: isSo }, { status: isSo ? 200 : 503 });
  return [
    get("/v2", () => Response.json(SERVER_METADATA)),
    get("/v2/health/live", () => ready("live", true)),
    get("/v2/health/ready", () => ready("ready", health.status("") === "serving")),
    get("/v2/models/stats", () => Response.json({ model_stats: modelStatistics(host, "", "") })),
    ...ofModel("GET", "", (_request, http) => Response.json(modelMetadata(catalog, entry(http)))),
    ...ofModel("GET", "/ready", (_request, http) => {
      const { model, version } = targetOf(http);
      return ready("ready", isReady(host, model, version), { name: model });
    }),
    ...ofModel("GET", "/config", (_request, http) => Response.json(modelConfig(entry(http), configTypeName))),
    ...ofModel("GET", "/stats", (_request, http) => {
      const { model, version } = targetOf(http);
      return Response.json({ model_stats: modelStatistics(host, model, version) });
    }),
    ...ofModel("POST", "/infer", (request, http) => inferOverHttp(host, request, http)),
    ...ofModel("POST", "/generate", (request, http) => generate(host, request, http)),
    ...ofModel("POST", "/generate_stream", (request, http) => generateStream(host, request, http)),
    post("/v2/repository/index", async (request, http) => {
      const { ready = false } = await readOptionalJson(request, http);
      if (typeof ready !== "boolean") throw badRequest("ready is not true or false");
      return Response.json(repositoryIndex(host, ready));
    }),
    post("/v2/repository/models/:model/load", async (request, http) => {
      const { parameters } = await readOptionalJson(request, http);
      await loadModel(host, http.params["model"]!, readParameters(parameters, "the request").keys());
      return Response.json({});
    }),
    post("/v2/repository/models/:model/unload", async (request, http) => {
      await readOptionalJson(request, http);
      unloadModel(host, http.params["model"]!);
      return Response.json({});
    }),
  ];
}

type Handle = HttpRoute["handle"];

function get(path: string, handle: Handle): HttpRoute {
  return { method: "GET", path, handle };
}

function post(path: string, handle: Handle): HttpRoute {
  return { method: "POST", path, handle };
}

// With and without a version.
function ofModel(method: HttpRoute["method"], action: string, handle: Handle): readonly HttpRoute[] {
  return [MODEL, VERSION].map((path) => ({ method, path: `${path}${action}`, handle }));
}

async function inferOverHttp(host: AdapterHost, request: Request, http: HttpContext): Promise<Response> {
  const asked = await readInferRequest(host.catalog, request, http);
  let response: Response | undefined;
  for await (const answer of infer(host, asked, http, "one")) response = inferResponse(answer, asked.isBinary);
  return response ?? fail();
}

function fail(): never {
  throw new ModelError("internal", "The function gave no answer");
}

// Clients send nothing, "", or an object.
async function readOptionalJson(request: Request, http: HttpContext): Promise<JsonObject> {
  const bytes = await http.readBody();
  if (bytes.length === 0) return {};
  const json = await readJson(request, { ...http, readBody: () => Promise.resolve(bytes) });
  if (!isObject(json)) throw badRequest("the body is no JSON object");
  return json;
}
