// Deno's own spans. Where OTEL_DENO is on it makes one of every request that node:http and node:http2 serve, but gives it to
// nobody: without it, a call's span would stand beside it, and where the client sends no context in another trace.

interface SpanLike {
  spanContext(): { readonly traceId: string; readonly spanId: string; readonly traceFlags: number };
}

/** Where @opentelemetry/api looks, and Deno registers at its start. */
const api = (globalThis as Readonly<Record<symbol, { readonly trace?: unknown } | undefined>>)[
  Symbol.for("opentelemetry.js.api.1")
];
const isTracing = api?.trace !== undefined;

/** The W3C `traceparent` of the span that Deno has made for a stream or a response; undefined where there is none. */
export function traceparentOf(carrier: object): string | undefined {
  if (!isTracing) return undefined;
  const key = Object.getOwnPropertySymbols(carrier).find(({ description }) => description === "kOtelSpan");
  const span = key && (carrier as Readonly<Record<symbol, SpanLike | undefined>>)[key];
  if (!span) return undefined;
  const { traceId, spanId, traceFlags } = span.spanContext();
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
}
