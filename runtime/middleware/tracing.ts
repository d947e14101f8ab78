// Spans of calls, where something exports them: Deno itself, with OTEL_DENO=true. Elsewhere nothing of this runs.
import {
  type Context,
  propagation,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  SpanKind,
  trace,
  type Tracer,
} from "@opentelemetry/api";
import { around, type Ending } from "../core/around.ts";
import type { Call, CallTrail, Interceptor } from "../core/call.ts";
import type { Observer } from "../core/observer.ts";
import { inContext } from "./tracing_context.ts";
import { CallSpan, type SpanOptions } from "./tracing_span.ts";
import { attributesOf, modelAttributes, spanName } from "./tracing_names.ts";

/** What makes spans. */
export interface Tracing {
  /** Around every call: its span, and the context that it hands on. */
  readonly calls: Interceptor;
  /** Around what runs, calls and batches of calls: their spans are the active ones. */
  readonly runs: Interceptor;
  /** Makes the spans within a call, and those of batches. */
  readonly observer: Observer;
}

/** Undefined where nobody exports spans. */
export function findTracing(): Tracing | undefined {
  const provider = trace.getTracerProvider();
  const tracer = provider instanceof ProxyTracerProvider
    ? provider.getDelegateTracer("tensorlet")
    : provider.getTracer("tensorlet");
  return tracer && createTracing(tracer);
}

/** A call that waited less has no span of it. */
const MIN_QUEUED_MS = 1;

/** Makes spans with `tracer`. */
export function createTracing(tracer: Tracer): Tracing {
  const spans = new WeakMap<CallTrail, CallSpan>();
  const start = (name: string, options: SpanOptions, parent = ROOT_CONTEXT) =>
    new CallSpan(tracer, name, options, parent);
  const spanOf = ({ trail }: Call) => trail && spans.get(trail);

  const calls: Interceptor = (next) => (call) => {
    const { trail = {}, metadata } = call;
    let span: CallSpan;
    return around({
      enter() {
        span = start(spanName(call), { kind: SpanKind.SERVER, attributes: attributesOf(call) }, contextOf(metadata));
        spans.set(trail, span);
        trail.span = span.ids;
      },
      values: () => next({ ...call, trail, metadata: withContext(metadata, span) }),
      leave: (ending) => span.end(ending, call.trail?.origin?.transport),
    });
  };

  const runs: Interceptor = (next) => (call) => {
    const span = spanOf(call);
    if (!span) return next(call);
    const isGathered = call.kind === "batch" && call.gathered === true;
    const run = isGathered ? { ...call, metadata: withContext(call.metadata, span) } : call;
    const leave = (ending: Ending) => {
      span.endHandler(undefined, ending); // where nobody told of its end
      if (isGathered) span.end(ending);
    };
    return around({ values: () => inContext(span.context, () => next(run)), leave });
  };

  const loads = (calls: readonly Call[]) => {
    const parents = calls.flatMap((call) => spanOf(call)?.context ?? []);
    return parents.length > 0 ? parents : [ROOT_CONTEXT];
  };

  const observer: Observer = {
    onBatch(batch, members) {
      if (!batch.trail) return;
      const ofMembers = members.flatMap((member) => spanOf(member) ?? []);
      const links = ofMembers.map(({ link }) => link);
      const span = start("batch", { links, attributes: attributesOf(batch) });
      spans.set(batch.trail, span);
      for (const member of ofMembers) {
        member.addPast("queue", member.ageMs);
        member.addLink(span.link);
      }
    },
    onStart(call, _model, queuedMs) {
      const span = spanOf(call);
      if (queuedMs >= MIN_QUEUED_MS) span?.addPast("queue", queuedMs);
      span?.startHandler();
    },
    onEnd: (call, _model, ms, ending) => spanOf(call)?.endHandler(ms, ending),
    onLoaded(model, ms, waiting) {
      for (const parent of loads(waiting)) {
        start("load", { attributes: modelAttributes(model), agoMs: ms }, parent).end();
      }
    },
    onLoadFailed(model, ms, reason, waiting) {
      const ending: Ending = { how: "failed", reason };
      for (const parent of loads(waiting)) {
        start("load", { attributes: modelAttributes(model), agoMs: ms }, parent).end(ending);
      }
    },
  };
  return { calls, runs, observer };
}

// Not the active context, which may be that of another call: Deno leaks it out of fetch. Deno's parser of baggage throws.
function contextOf(metadata: Headers): Context {
  try {
    return propagation.extract(ROOT_CONTEXT, metadata, HEADERS);
  } catch {
    return ROOT_CONTEXT;
  }
}

// Whoever gets them continues the span.
function withContext(metadata: Headers, { context }: CallSpan): Headers {
  const headers = new Headers(metadata);
  propagation.inject(context, headers, HEADERS);
  return headers;
}

const HEADERS = {
  get: (headers: Headers, key: string) => headers.get(key) ?? undefined,
  keys: (headers: Headers) => [...headers.keys()],
  set: (headers: Headers, key: string, value: string) => headers.set(key, value),
};
