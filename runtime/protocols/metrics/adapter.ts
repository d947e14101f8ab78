// Metrics in Prometheus' text format: what all of the server's processes count.
import denoJson from "../../../deno.json" with { type: "json" };
import type { MetricFamily, ProcessMetrics } from "../../core/metrics.ts";
import type { ProtocolAdapter } from "../adapter.ts";
import { operation, TEXT } from "../openapi.ts";

const BUILD: MetricFamily = {
  name: "tensorlet_build_info",
  help: "What the server is made of; always 1.",
  type: "gauge",
  aggregator: "first",
  values: [{ labels: { version: denoJson.version, deno: Deno.version.deno }, value: 1 }],
};

const OPENAPI = {
  tags: [{ name: "Metrics", description: "For Prometheus" }],
  paths: {
    "/metrics": {
      get: operation("/metrics", {
        tag: "Metrics",
        summary: "What the server counts and measures, in Prometheus' text format",
        answer: { content: { "text/plain": { schema: TEXT } } },
      }),
    },
  },
};

/** `GET /metrics`. */
export const metrics: ProtocolAdapter = (host) => ({
  http: [{
    method: "GET",
    path: "/metrics",
    async handle() {
      // It takes 0.1 s, which a server's start need not wait for.
      const { AggregatorRegistry } = await import("prom-client");
      const processes: ProcessMetrics[] = [[BUILD], ...await host.metrics()];
      const all = AggregatorRegistry.aggregate(processes.map((families) => [...families]));
      return new Response(await all.metrics(), { headers: { "content-type": all.contentType } });
    },
  }],
  openApi: OPENAPI,
});
