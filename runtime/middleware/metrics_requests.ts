// Counts the requests of each protocol: how many, how they ended, how long they took, and the tokens that they got.
import type { Call, CallKind, Reply } from "../core/call.ts";
import type { CatalogEntry } from "../core/catalog.ts";
import type { ModelError } from "../core/error.ts";
import type { MetricFamily } from "../core/metrics.ts";
import type { FunctionStatistics } from "../core/statistics.ts";
import { Histogram, SECONDS } from "./histogram.ts";
import { counter, gauge, histogram } from "./metrics_family.ts";
import type { CallMeter, MeterOf } from "./request_log.ts";

/** How many calls there were. */
export interface CallCounts {
  readonly started: number;
  /** Those that have ended, in whatever way. */
  readonly finished: number;
  /** Those that ended in a failure; that a client left is none. */
  readonly failed: number;
}

interface Labels extends Readonly<Record<string, string>> {
  readonly kind: CallKind | "";
  /** "" where the registry knows none. */
  readonly model: string;
  readonly version: string;
  readonly protocol: string;
}

class Series {
  readonly labels: Labels;
  inFlight = 0;
  /** How many ended with each code. */
  readonly codes: Record<string, number> = Object.create(null);
  readonly duration = new Histogram(SECONDS);
  /** Milliseconds of those that succeeded, and of those that failed. */
  okMs = 0;
  failedMs = 0;
  /** Epoch milliseconds; 0 = none has ended. */
  lastEndAt = 0;
  tokens = 0;
  readonly firstToken: Histogram | undefined;

  constructor(labels: Labels) {
    this.labels = labels;
    if (labels.kind === "stream" || labels.kind === "chat") this.firstToken = new Histogram(SECONDS);
  }

  end(code: string, ms: number): void {
    this.codes[code] = (this.codes[code] ?? 0) + 1;
    if (code === "cancelled") return;
    this.lastEndAt = Date.now();
    if (code === "ok") this.okMs += ms;
    else this.failedMs += ms;
  }

  /** How many succeeded, failed, and neither: whose caller left. */
  get counts(): { readonly ok: number; readonly failed: number; readonly cancelled: number } {
    const { ok = 0, cancelled = 0, ...others } = this.codes;
    return { ok, failed: Object.values(others).reduce((sum, count) => sum + count, 0), cancelled };
  }
}

const UNKNOWN = { name: "", version: "" };

/** The requests of a server. */
export class RequestMetrics {
  readonly #find: (call: Call) => CatalogEntry;
  readonly #series = new Map<string, Series>();
  /** Failures of calls, which are counted with these. */
  readonly #counted = new WeakSet<ModelError>();

  /** `find` throws where the registry does not know the call's function. */
  constructor(find: (call: Call) => CatalogEntry) {
    this.#find = find;
  }

  /** Counts the calls of a protocol. */
  meterOf(protocol: string): MeterOf {
    // An entry is of one load of a function.
    const series = new WeakMap<object, Partial<Record<CallKind, Series>>>();
    return (call, startedAt) => {
      const entry = this.#entryOf(call);
      let kinds = series.get(entry);
      if (!kinds) series.set(entry, kinds = {});
      const found = kinds[call.kind] ??= this.#of(call.kind, entry, protocol);
      return new Meter(found, startedAt, this.#counted);
    };
  }

  /** A request of a protocol has failed; returns false where a call of it did, which is counted already. */
  failed(protocol: string, error: ModelError): boolean {
    const isNew = !this.#counted.has(error);
    if (isNew) this.#of("", UNKNOWN, protocol).end(error.code, 0);
    return isNew;
  }

  /** All calls. */
  get counts(): CallCounts {
    let inFlight = 0;
    let finished = 0;
    let failed = 0;
    for (const series of this.#series.values()) {
      if (series.labels.kind === "") continue;
      const { counts } = series;
      inFlight += series.inFlight;
      finished += counts.ok + counts.failed + counts.cancelled;
      failed += counts.failed;
    }
    return { started: inFlight + finished, finished, failed };
  }

  /** The calls of a version of a function. */
  statistics(name: string, version: string): Pick<FunctionStatistics, "lastCallAt" | "succeeded" | "failed"> {
    const all = this.#series.values().filter(({ labels }) => labels.model === name && labels.version === version)
      .toArray();
    const sum = (of: (series: Series) => number) => all.reduce((sum, series) => sum + of(series), 0);
    return {
      lastCallAt: Math.max(0, ...all.map(({ lastEndAt }) => lastEndAt)),
      succeeded: { count: sum(({ counts }) => counts.ok), ms: sum(({ okMs }) => okMs) },
      failed: { count: sum(({ counts }) => counts.failed), ms: sum(({ failedMs }) => failedMs) },
    };
  }

  /** What there is to show. */
  *families(): Iterable<MetricFamily> {
    const all = [...this.#series.values()];
    const calls = all.filter(({ labels }) => labels.kind !== "");
    yield counter(
      "tensorlet_requests_total",
      "Requests that have ended, by how; without a kind: those that failed before they called a function.",
      all.flatMap(({ labels, codes }) =>
        Object.entries(codes).map(([code, value]) => ({ labels: { ...labels, code }, value }))
      ),
    );
    yield gauge(
      "tensorlet_requests_in_flight",
      "Requests in progress.",
      calls.map(({ labels, inFlight: value }) => ({ labels, value })),
    );
    yield histogram(
      "tensorlet_request_duration_seconds",
      "From a request to the end of its answer.",
      calls.map(({ labels, duration }) => [labels, duration]),
    );
    yield histogram(
      "tensorlet_time_to_first_token_seconds",
      "From a request to the first token of its answer.",
      calls.flatMap(({ labels, firstToken }) => firstToken ? [[labels, firstToken]] : []),
    );
    yield counter(
      "tensorlet_tokens_total",
      "Tokens, and other chunks of streams, that were answered.",
      calls.flatMap(({ labels, firstToken, tokens: value }) => firstToken ? [{ labels, value }] : []),
    );
  }

  #entryOf(call: Call): Pick<CatalogEntry, "name" | "version"> {
    try {
      return this.#find(call);
    } catch {
      return UNKNOWN; // not what the caller says: anybody could fill the memory with names
    }
  }

  #of(kind: CallKind | "", { name, version }: Pick<CatalogEntry, "name" | "version">, protocol: string): Series {
    const key = JSON.stringify([kind, name, version, protocol]);
    let series = this.#series.get(key);
    if (!series) this.#series.set(key, series = new Series({ kind, model: name, version, protocol }));
    return series;
  }
}

class Meter implements CallMeter {
  readonly #series: Series;
  readonly #startedAt: number;
  readonly #counted: WeakSet<ModelError>;
  #hasToken = false;

  constructor(series: Series, startedAt: number, counted: WeakSet<ModelError>) {
    this.#series = series;
    this.#startedAt = startedAt;
    this.#counted = counted;
    series.inFlight++;
  }

  onReply(reply: Reply): void {
    const { firstToken } = this.#series;
    if (!firstToken || (reply.type === "delta" ? reply.text === "" : reply.type !== "tensors")) return;
    this.#series.tokens++;
    if (this.#hasToken) return;
    this.#hasToken = true;
    firstToken.observe((performance.now() - this.#startedAt) / 1000);
  }

  onEnd(code: string, ms: number, error: ModelError | undefined): void {
    this.#series.inFlight--;
    this.#series.end(code, ms);
    this.#series.duration.observe(ms / 1000);
    if (error) this.#counted.add(error);
  }
}
