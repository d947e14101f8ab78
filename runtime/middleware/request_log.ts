// One log line per call, and the cause of every internal failure: the client gets a neutral text, the log the rest. Calls
// are metered on the way: another interceptor for that would cost every reply more than what it counts.
import { around, type Ending } from "../core/around.ts";
import type { Call, CallTrail, Interceptor, Reply } from "../core/call.ts";
import { type ModelError, toModelError } from "../core/error.ts";
import { type LogFields, type Logger, msSince } from "../core/log.ts";
import { byteLengthOf } from "../core/tensor.ts";

/** Counts one call. */
export interface CallMeter {
  onReply(reply: Reply): void;
  /** It has ended, after `ms`: "ok", "cancelled" where its reader left, or with the code of its failure. */
  onEnd(code: string, ms: number, error: ModelError | undefined): void;
}

/** Begins to count a call; `startedAt` is of `performance.now()`. */
export type MeterOf = (call: Call, startedAt: number) => CallMeter;

/** The options of {@linkcode requestLog}. */
export interface LogOptions {
  readonly log: Logger;
  /** Logs calls at `info` instead of `debug`. */
  readonly accessLog: boolean;
  /** By which they come. */
  readonly protocol: string;
  readonly meterOf: MeterOf;
}

/** Logs calls, and internal failures with their cause at error level; has them counted. Nothing that a user wrote is logged. */
export function requestLog({ log, accessLog, protocol, meterOf }: LogOptions): Interceptor {
  const write = accessLog ? log.info : log.debug;
  return (next) => (call) => {
    let start: number;
    let meter: CallMeter;
    let replies = 0;
    const details = accessLog ? detailsOf(call) : undefined; // the tensors may be gone when it has ended
    return around({
      enter() {
        start = performance.now();
        meter = meterOf(call, start);
      },
      values: () => next(call),
      onValue(reply) {
        if (reply.type === "failure") logFailure(log, reply.error, fieldsOf(call));
        replies++;
        meter.onReply(reply);
      },
      toFailure(thrown) {
        const error = toModelError(thrown, call.id);
        logFailure(log, error, fieldsOf(call));
        return error;
      },
      leave(ending) {
        const code = codeOf(ending);
        const ms = msSince(start);
        meter.onEnd(code, ms, ending.how === "failed" ? ending.reason as ModelError : undefined);
        write("call", {
          ...fieldsOf(call),
          ...details,
          code,
          replies,
          ms,
          ...accessLog && trailOf(call.trail, protocol),
        });
      },
    });
  };
}

/** The line of a request that failed outside of a call: its function is not known, it cannot be read, or its answer not sent. */
export function logRefused(
  log: Logger,
  protocol: string,
  { code }: ModelError,
  { id, origin }: { readonly id: string; readonly origin?: CallTrail["origin"] },
): void {
  log.info("call", { requestId: id, code, ...trailOf({ origin }, protocol) });
}

function codeOf(ending: Ending): string {
  if (ending.how === "failed") return (ending.reason as ModelError).code;
  return ending.how === "completed" ? "ok" : "cancelled";
}

function fieldsOf(call: Call): LogFields {
  return { kind: call.kind, model: call.model.slice(0, 100), requestId: call.id };
}

function detailsOf(call: Call): LogFields {
  const { version } = call;
  if (call.kind === "chat") return { version };
  if (call.kind !== "batch") return { version, inputBytes: byteLengthOf(call.input) };
  const inputBytes = call.items.reduce((sum, { input }) => sum + byteLengthOf(input), 0);
  return { version, items: call.items.length, inputBytes };
}

// `trace_id` and `span_id` are what OpenTelemetry calls them in a log.
function trailOf({ origin, queuedMs, span }: CallTrail = {}, protocol: string): LogFields {
  return {
    protocol,
    transport: origin?.transport,
    method: origin?.method,
    peer: origin?.peer,
    queueMs: queuedMs === undefined ? undefined : Math.round(queuedMs * 1000) / 1000,
    trace_id: span?.traceId,
    span_id: span?.spanId,
  };
}

function logFailure(log: Logger, error: ModelError, fields: LogFields): void {
  if (error.code !== "internal" && error.code !== "unknown") return;
  log.error(error.message, { ...fields, code: error.code, cause: error.cause });
}
