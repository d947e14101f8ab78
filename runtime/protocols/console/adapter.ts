// The console: pages for a browser, and the API that they use. The API is the pages' own and may change with them.
import type { HttpRoute, ProtocolAdapter } from "../adapter.ts";
import { activity } from "./activity.ts";
import { chat, json, predict, stream } from "./calls.ts";
import { catalogJson } from "./catalog.ts";
import { StaticFiles } from "./files.ts";

/** The console at `/`. */
export const webConsole: ProtocolAdapter = (host) => {
  const files = new StaticFiles();
  const folder = (path: string, prefix: string): HttpRoute => ({
    method: "GET",
    path: `${path}/:file`,
    handle: (request, { params }) => files.serve(prefix + params.file, request),
  });
  const http: readonly HttpRoute[] = [
    { method: "GET", path: "/", handle: (request) => files.serve("page.html", request) },
    folder("/console/static", ""),
    folder("/console/static/vendor", "vendor/"),
    // What a client in another language begins with.
    folder("/console/protos", "protos/"),
    { method: "GET", path: "/console/api/functions", handle: () => json(catalogJson(host)) },
    { method: "GET", path: "/console/api/events", handle: (_request, http) => activity(host, http) },
    {
      method: "POST",
      path: "/console/api/functions/:name/predict",
      handle: (request, http) => predict(host, request, http),
    },
    {
      method: "POST",
      path: "/console/api/functions/:name/stream",
      handle: (request, http) => stream(host, request, http),
    },
    { method: "POST", path: "/console/api/functions/:name/chat", handle: (request, http) => chat(host, request, http) },
  ];
  return { http };
};
