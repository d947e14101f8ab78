// A tracer of OpenTelemetry that keeps its spans.
import {
  type AttributeValue,
  type Context,
  INVALID_SPANID,
  type Link,
  type Span,
  type SpanContext,
  type SpanOptions,
  type SpanStatus,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer,
} from "@opentelemetry/api";

/** A span as it was made. */
export interface KeptSpan {
  readonly name: string;
  /** The parent's name; undefined for a root. */
  readonly parent: string | undefined;
  readonly context: SpanContext;
  readonly attributes: Record<string, AttributeValue>;
  readonly links: SpanContext[];
  readonly events: string[];
  readonly startMs: number;
  endMs: number | undefined;
  status: SpanStatus;
}

/** A tracer, and its spans in the order in which they began. */
export class KeepingTracer implements Tracer {
  readonly spans: KeptSpan[] = [];

  startSpan(name: string, options: SpanOptions = {}, context?: Context): Span {
    const above = context && trace.getSpanContext(context);
    const id = `${this.spans.length + 1}`;
    const kept: KeptSpan = {
      name,
      parent: this.spans.find((span) => span.context.spanId === above?.spanId)?.name,
      context: {
        traceId: above?.traceId ?? id.padStart(32, "0"),
        spanId: id.padStart(INVALID_SPANID.length, "0"),
        traceFlags: TraceFlags.SAMPLED,
      },
      attributes: { ...options.attributes } as Record<string, AttributeValue>,
      links: (options.links ?? []).map((link) => link.context),
      events: [],
      startMs: options.startTime as number,
      endMs: undefined,
      status: { code: SpanStatusCode.UNSET },
    };
    this.spans.push(kept);
    return spanOf(kept);
  }

  startActiveSpan(): never {
    throw new TypeError("Nobody makes active spans");
  }

  /** The only span of this name. */
  only(name: string): KeptSpan {
    const all = this.spans.filter((span) => span.name === name);
    if (all.length !== 1) throw new Error(`${all.length} spans are called ${name}`);
    return all[0]!;
  }
}

function spanOf(kept: KeptSpan): Span {
  const span = {
    spanContext: () => kept.context,
    setAttribute: (key: string, value: AttributeValue) => (kept.attributes[key] = value, span),
    addLink: ({ context }: Link) => (kept.links.push(context), span),
    setStatus: (status: SpanStatus) => (kept.status = status, span),
    recordException: (error: Error) => void kept.events.push(error.message),
    isRecording: () => true,
    end(endMs: number) {
      if (kept.endMs !== undefined) throw new Error(`${kept.name} has ended before`);
      kept.endMs = endMs;
    },
  };
  return span as unknown as Span;
}
