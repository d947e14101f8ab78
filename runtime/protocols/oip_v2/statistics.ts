// inference.ModelStatistics from what the server counts.
import type { CatalogEntry } from "../../core/catalog.ts";
import type { Durations } from "../../core/statistics.ts";
import type { AdapterHost } from "../adapter.ts";
import { entryOf } from "./describe.ts";

const NONE = { count: 0, ns: 0 };

/** The rows of `ModelStatisticsResponse`; every function's where `name` is "". */
export function modelStatistics(host: AdapterHost, name: string, version: string) {
  const entries = name === ""
    ? [...host.catalog.list()]
    : version === ""
    ? [...host.catalog.list()].filter((each) => each.name === entryOf(host.catalog, name, "").name)
    : [entryOf(host.catalog, name, version)];
  return entries.map((entry) => rowOf(host, entry));
}

function rowOf(host: AdapterHost, { name, version }: CatalogEntry) {
  const { lastCallAt, succeeded, failed, queued, computed, executions } = host.statistics(name, version);
  return {
    name,
    version,
    last_inference: lastCallAt,
    inference_count: computed.count,
    execution_count: executions,
    inference_stats: {
      success: durationOf(succeeded),
      fail: durationOf(failed),
      queue: durationOf(queued),
      compute_input: NONE,
      compute_infer: durationOf(computed),
      compute_output: NONE,
      cache_hit: NONE,
      cache_miss: NONE,
    },
  };
}

function durationOf({ count, ms }: Durations) {
  return { count, ns: Math.round(ms * 1e6) };
}
