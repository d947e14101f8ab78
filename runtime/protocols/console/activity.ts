// What the server does, once a second, for the console's plots.
import type { ActivityCounts } from "../../core/activity.ts";
import { linkSignals } from "../../core/signal.ts";
import type { AdapterHost, HttpContext } from "../adapter.ts";
import { eventStream } from "../http.ts";
import { catalogJson } from "./catalog.ts";
import type { ActivityJson, CountsJson, FeedEvent } from "./messages.ts";

const PERIOD_MS = 1000;

/** Sends what the server has done, at once and then every second, and the functions whenever they have changed. */
export function activity(host: AdapterHost, http: HttpContext): Response {
  return eventStream(samples(host, http));
}

async function* samples(host: AdapterHost, http: HttpContext): AsyncGenerator<string, void, undefined> {
  using stop = linkSignals(http.signal, http.draining);
  let known = "";
  while (!stop.signal.aborted) {
    const catalog = catalogJson(host);
    const now = JSON.stringify(catalog);
    yield JSON.stringify({ activity: sample(host), ...now !== known && { catalog } } satisfies FeedEvent);
    known = now;
    await pause(stop.signal);
  }
}

function sample(host: AdapterHost): ActivityJson {
  const { total, functions } = host.activity();
  return {
    ...counts(total),
    rssBytes: Deno.memoryUsage().rss,
    functions: Object.fromEntries(functions.entries().map(([name, of]) => [name, counts(of)])),
  };
}

// JSON leaves out what is undefined.
function counts(of: ActivityCounts): CountsJson {
  return { ...of, inFlight: of.started - of.finished };
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, PERIOD_MS);
    signal.addEventListener("abort", end);
  });
}
