// The wire protocols that are served; a new one is a folder and a line here.
import type { ProtocolAdapter } from "./adapter.ts";
import { webConsole } from "./console/adapter.ts";
import { health } from "./health/adapter.ts";
import { inference } from "./inference/adapter.ts";
import { inferenceV1 } from "./inference_v1/adapter.ts";
import { metrics } from "./metrics/adapter.ts";
import { oipV2 } from "./oip_v2/adapter.ts";
import { openai } from "./openai/adapter.ts";
import { openapi } from "./openapi/adapter.ts";
import { reflection } from "./reflection/adapter.ts";

/** The built-in protocols. */
export const PROTOCOLS: readonly ProtocolAdapter[] = [
  inference,
  inferenceV1,
  oipV2,
  health,
  reflection,
  openai,
  metrics,
  openapi,
  webConsole,
];
