// One RPC from request bytes to response bytes, whatever moves them: decoding, encoding, the size limit, errors.
import { ModelError, toModelError } from "../core/error.ts";
import { mapValues } from "../core/map_values.ts";
import { type Logger, msSince } from "../core/log.ts";
import { isRequestId } from "../core/request_id.ts";
import type { RpcContext, RpcMethod } from "../protocols/adapter.ts";

/** What a transport knows of an RPC. */
export interface TransportContext extends Omit<RpcContext, "decodedAt"> {
  readonly log: Logger;
}

/** Runs a method; throws only `ModelError`s. */
export async function* runMethod(
  method: RpcMethod,
  requests: AsyncIterable<Uint8Array, void, undefined>,
  context: TransportContext,
): AsyncGenerator<Uint8Array, void, undefined> {
  const start = performance.now();
  let decodedAt = 0;
  let answers = 0;
  let code = "cancelled";
  const decode = (bytes: Uint8Array) => {
    decodedAt = performance.now();
    return method.decode(bytes);
  };
  try {
    for await (
      const message of method.handle(mapValues(requests, decode), {
        ...context,
        decodedAt: () => decodedAt,
      })
    ) {
      const bytes = method.encode(message);
      if (bytes.length > context.maxMessageBytes) throw tooLarge(bytes.length, context.maxMessageBytes);
      answers++;
      yield bytes;
    }
    if (answers === 0 && !method.serverStreaming) throw new ModelError("internal", "The function gave no answer");
    code = "ok";
  } catch (thrown) {
    const error = toModelError(thrown, context.id);
    code = error.code;
    method.onFailure?.(error, context);
    // What functions throw has been logged, and is a ModelError by now; this failed around them, in encoding say.
    if (error !== thrown) {
      context.log.error("Cannot answer a call", { method: method.name, requestId: context.id, cause: thrown });
    }
    throw error;
  } finally {
    context.log.debug("rpc", {
      method: method.name,
      requestId: context.id,
      code,
      messages: answers,
      ms: msSince(start),
    });
  }
}

function tooLarge(bytes: number, maxBytes: number): ModelError {
  return new ModelError(
    "resource_exhausted",
    `Cannot send the answer: it takes ${bytes} bytes, the limit is ${maxBytes} (option maxMessageBytes)`,
  );
}

/** The caller's request id where it can be one, else a new one; `name` is another header that may carry it. */
export function requestIdOf(metadata: Headers, name?: string): string {
  const sent = metadata.get("request-id") ?? (name === undefined ? null : metadata.get(name));
  return sent !== null && isRequestId(sent) ? sent : crypto.randomUUID();
}
