// One log line per call, and the cause of every internal failure: the client gets a neutral text, the log the rest. Calls
// are counted on the way.
import { around, type Ending } from "../core/around.ts";
import type { Call, Interceptor } from "../core/call.ts";
import { type ModelError, toModelError } from "../core/error.ts";
import { type LogFields, type Logger, msSince } from "../core/log.ts";

/** How many calls there were. */
export class CallCounts {
  started = 0;
  /** Those that have ended, in whatever way. */
  finished = 0;
  /** Those that ended in a failure; that a client left is none. */
  failed = 0;
}

/** Logs calls at debug level, and internal failures with their cause at error level; counts them. */
export function requestLog(log: Logger, calls: CallCounts): Interceptor {
  return (next) => (call) => {
    let start: number;
    let replies = 0;
    return around({
      enter() {
        calls.started++;
        start = performance.now();
      },
      values: () => next(call),
      onValue(reply) {
        if (reply.type === "failure") logFailure(log, reply.error, fieldsOf(call));
        replies++;
      },
      toFailure(thrown) {
        const error = toModelError(thrown, call.id);
        logFailure(log, error, fieldsOf(call));
        return error;
      },
      leave(ending) {
        const code = codeOf(ending);
        calls.finished++;
        if (code !== "ok" && code !== "cancelled") calls.failed++;
        log.debug("call", {
          ...fieldsOf(call),
          code,
          replies,
          ms: msSince(start),
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
