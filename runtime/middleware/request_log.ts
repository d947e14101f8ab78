// One log line per call, and the cause of every internal failure: the client gets a neutral text, the log the rest.
import { around, type Ending } from "../core/around.ts";
import type { Call, Interceptor } from "../core/call.ts";
import { type ModelError, toModelError } from "../core/error.ts";
import type { LogFields, Logger } from "../core/log.ts";

/** Logs calls at debug level, and internal failures with their cause at error level. */
export function requestLog(log: Logger): Interceptor {
  return (next) => (call) => {
    let start: number;
    let replies = 0;
    return around({
      enter: () => void (start = performance.now()),
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
        log.debug("call", {
          ...fieldsOf(call),
          code: codeOf(ending),
          replies,
          ms: Math.round((performance.now() - start) * 1000) / 1000,
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
