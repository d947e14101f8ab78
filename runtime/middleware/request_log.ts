// One log line per call, and the cause of every internal failure: the client gets a neutral text, the log the rest.
import type { Call, Interceptor, Invoke, Reply } from "../core/call.ts";
import { type ModelError, toModelError } from "../core/error.ts";
import type { LogFields, Logger } from "../core/log.ts";

/** Logs calls at debug level, and internal failures with their cause at error level. */
export function requestLog(log: Logger): Interceptor {
  async function* run(next: Invoke, call: Call): AsyncIterable<Reply, void, undefined> {
    const start = performance.now();
    let replies = 0;
    let error: ModelError | undefined;
    let ended = false;
    try {
      for await (const reply of next(call)) {
        if (reply.type === "failure") logFailure(log, reply.error, fieldsOf(call));
        replies++;
        yield reply;
      }
      ended = true;
    } catch (thrown) {
      error = toModelError(thrown, call.id);
      logFailure(log, error, fieldsOf(call));
      throw error;
    } finally {
      log.debug("call", {
        ...fieldsOf(call),
        code: error?.code ?? (ended ? "ok" : "cancelled"),
        replies,
        ms: Math.round((performance.now() - start) * 1000) / 1000,
      });
    }
  }
  return (next) => (call) => run(next, call);
}

function fieldsOf(call: Call): LogFields {
  return { kind: call.kind, model: call.model.slice(0, 100), requestId: call.id };
}

function logFailure(log: Logger, error: ModelError, fields: LogFields): void {
  if (error.code !== "internal" && error.code !== "unknown") return;
  log.error(error.message, { ...fields, code: error.code, cause: error.cause });
}
