// The span of a call or a batch, and those within it, by one clock.
import {
  type Attributes,
  type Context,
  type Link,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from "@opentelemetry/api";
import type { Ending } from "../core/around.ts";
import type { CallOrigin } from "../core/call.ts";
import { codeNumber, type ErrorCode, ModelError } from "../core/error.ts";

/** The options of a span. */
export interface SpanOptions {
  /** @default internal */
  readonly kind?: SpanKind;
  readonly attributes?: Attributes;
  readonly links?: Link[];
  /** It began so many milliseconds ago. @default {0} */
  readonly agoMs?: number;
}

/** What of a server's span is the server's own failure, and not the client's mistake: as the conventions of RPC say. */
const SERVER_FAILURES: readonly ErrorCode[] = [
  "unknown",
  "deadline_exceeded",
  "unimplemented",
  "internal",
  "unavailable",
  "data_loss",
];

/** A span in progress. */
export class CallSpan {
  readonly #tracer: Tracer;
  readonly #span: Span;
  // Wall time as it was once, and what has passed since: no step of the clock gets between the spans of a call.
  readonly #epochMs = Date.now();
  readonly #startedAt = performance.now();
  #handler: { readonly span: Span; readonly startMs: number } | undefined;
  /** With it as the parent. */
  readonly context: Context;

  constructor(
    tracer: Tracer,
    name: string,
    { agoMs = 0, kind = SpanKind.INTERNAL, ...options }: SpanOptions,
    parent: Context,
  ) {
    this.#tracer = tracer;
    this.#span = tracer.startSpan(name, { ...options, kind, startTime: this.#epochMs - agoMs }, parent);
    this.context = trace.setSpan(parent, this.#span);
  }

  /** What others write down of it. */
  get ids(): { readonly traceId: string; readonly spanId: string } {
    const { traceId, spanId } = this.#span.spanContext();
    return { traceId, spanId };
  }

  /** A link to it. */
  get link(): Link {
    return { context: this.#span.spanContext() };
  }

  /** Milliseconds since it began. */
  get ageMs(): number {
    return performance.now() - this.#startedAt;
  }

  /** Adds a link to another span. */
  addLink(link: Link): void {
    this.#span.addLink(link);
  }

  /** Adds a child for what took the last `ms`. */
  addPast(name: string, ms: number): void {
    const now = this.#now();
    this.#tracer.startSpan(name, { startTime: now - ms }, this.context).end(now);
  }

  /** The call has an instance, and begins to run. */
  startHandler(): void {
    const startMs = this.#now();
    this.#handler = { span: this.#tracer.startSpan("handler", { startTime: startMs }, this.context), startMs };
  }

  /** It has run for `ms`, or until now. Says nothing where it has ended before. */
  endHandler(ms: number | undefined, ending: Ending): void {
    if (!this.#handler) return;
    const { span, startMs } = this.#handler;
    this.#handler = undefined;
    setEnding(span, ending);
    span.end(ms === undefined ? this.#now() : startMs + ms);
  }

  /** It is over; what came over gRPC says its status too. */
  end(ending: Ending = { how: "completed" }, transport?: CallOrigin["transport"]): void {
    const code = setEnding(this.#span, ending);
    if (transport !== undefined && transport !== "http") {
      this.#span.setAttribute("rpc.grpc.status_code", codeNumber(code));
    }
    this.#span.end(this.#now());
  }

  #now(): number {
    return this.#epochMs + this.ageMs;
  }
}

// What a failure says to the client, and why it failed: whoever reads spans may read the server's log.
function setEnding(span: Span, ending: Ending): ErrorCode | "ok" {
  if (ending.how === "completed") return "ok";
  if (ending.how === "left") return "cancelled";
  const { reason } = ending;
  const code = reason instanceof ModelError ? reason.code : "unknown";
  const message = reason instanceof Error ? reason.message : String(reason);
  span.setAttribute("error.type", code);
  if (!SERVER_FAILURES.includes(code)) return code;
  span.setStatus({ code: SpanStatusCode.ERROR, message });
  const cause = reason instanceof ModelError ? reason.cause : reason;
  if (cause instanceof Error) span.recordException(cause);
  return code;
}
