// Who is told what becomes of calls and instances.
import { type Observer, observers } from "../core/observer.ts";
import { queueTimes } from "../middleware/queue_time.ts";
import { findTracing, type Tracing } from "../middleware/tracing.ts";

/** What is told beside `metrics`: what makes spans, where they are exported, and the access log, where there is one. */
export function observe(
  metrics: Observer,
  accessLog: boolean,
): { readonly observer: Observer; readonly tracing: Tracing | undefined } {
  const tracing = findTracing();
  const others = [...tracing ? [tracing.observer] : [], ...accessLog ? [queueTimes()] : []];
  return { tracing, observer: others.length > 0 ? observers(metrics, ...others) : metrics };
}
