// One log line per call, and the cause of every internal failure: the client gets a neutral text, the log the rest. Calls
// are metered on the way: another interceptor for that would cost every reply more than what it counts.
import { around, type Ending } from "../core/around.ts";
import type { Call, Interceptor, Reply } from "../core/call.ts";
import { type ModelError, toModelError } from "../core/error.ts";
import { type LogFields, type Logger, msSince } from "../core/log.ts";

/** Counts one call. */
export interface CallMeter {
  onReply(reply: Reply): void;
  /** It has ended, after `ms`: "ok", "cancelled" where its reader left, or with the code of its failure. */
  onEnd(code: string, ms: number, error: ModelError | undefined): void;
}

/** Begins to count a call; `startedAt` is of `performance.now()`. */
export type MeterOf = (call: Call, startedAt: number) => CallMeter;

/** Logs calls at debug level, and internal failures with their cause at error level; has them counted. */
export function requestLog(log: Logger, meterOf: MeterOf): Interceptor {
  return (next) => (call) => {
    let start: number;
    let meter: CallMeter;
    let replies = 0;
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
        log.debug("call", {
          ...fieldsOf(call),
          code,
          replies,
          ms,
        });
      },
    });
  };
}

function codeOf(ending: Ending): string {
  if (ending.how === "failed") return (ending.reason as ModelError).code;
  return ending.how === "completed" ? "ok" : "cancelled";
}

function fieldsOf(call: Call): LogFields {
  return { kind: call.kind, model: call.model.slice(0, 100), requestId: call.id };
}

function logFailure(log: Logger, error: ModelError, fields: LogFields): void {
  if (error.code !== "internal" && error.code !== "unknown") return;
  log.error(error.message, { ...fields, code: error.code, cause: error.cause });
}
