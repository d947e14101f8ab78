// What OpenAI's clients ask for: models, chat completions, completions.
import type { HttpRoute, ProtocolAdapter } from "../adapter.ts";
import { chat } from "./chat.ts";
import { complete } from "./completions.ts";
import { errorBody } from "./error.ts";
import { Models } from "./models.ts";
import { OPENAPI } from "./openapi.ts";

/** OpenAI's API, as far as functions have it: `/v1/models`, `/v1/chat/completions`, `/v1/completions`. */
export const openai: ProtocolAdapter = (host) => {
  const models = new Models(host);
  const routes: readonly HttpRoute[] = [
    { method: "GET", path: "/v1/models", handle: () => models.list() },
    { method: "GET", path: "/v1/models/:model", handle: (_request, http) => models.retrieve(http) },
    { method: "POST", path: "/v1/chat/completions", handle: (request, http) => chat(host, request, http) },
    { method: "POST", path: "/v1/completions", handle: (request, http) => complete(host, request, http) },
  ];
  return { http: routes.map((route) => ({ ...route, errorBody })), openApi: OPENAPI };
};
