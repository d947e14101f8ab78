// The Open Inference Protocol v2, as KServe, Triton and MLServer speak it.
import type { ProtocolAdapter } from "../adapter.ts";
import { createHttpRoutes } from "./http.ts";
import { OPENAPI } from "./openapi.ts";
import { createRpcService } from "./rpc.ts";

/** The protocol over gRPC and HTTP. */
export const oipV2: ProtocolAdapter = (host) => ({
  rpc: [createRpcService(host)],
  http: createHttpRoutes(host),
  openApi: OPENAPI,
});
