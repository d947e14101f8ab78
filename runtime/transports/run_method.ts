// One RPC from request bytes to response bytes, whatever moves them: decoding, encoding, the size limit, errors.
import { ModelError, toModelError } from "../core/error.ts";
import type { RpcContext, RpcMethod } from "../protocols/adapter.ts";

/** What a transport knows of an RPC. */
export type TransportContext = Omit<RpcContext, "decodedAt">;

/** Runs a method; throws only `ModelError`s. */
export async function* runMethod(
  method: RpcMethod,
  requests: AsyncIterable<Uint8Array, void, undefined>,
  context: TransportContext,
): AsyncGenerator<Uint8Array, void, undefined> {
  let decodedAt = 0;
  async function* decoded(): AsyncGenerator<unknown, void, undefined> {
    for await (const bytes of requests) {
      decodedAt = performance.now();
      yield method.decode(bytes);
    }
  }
  try {
    for await (const message of method.handle(decoded(), { ...context, decodedAt: () => decodedAt })) {
      const bytes = method.encode(message);
      if (bytes.length > context.maxMessageBytes) throw tooLarge(bytes.length, context.maxMessageBytes);
      yield bytes;
    }
  } catch (error) {
    throw toModelError(error, context.id);
  }
}

function tooLarge(bytes: number, maxBytes: number): ModelError {
  return new ModelError(
    "resource_exhausted",
    `Cannot send the answer: it takes ${bytes} bytes, the limit is ${maxBytes} (option maxMessageBytes)`,
  );
}

/** The caller's request id where it can be one, else a new one. */
export function requestIdOf(metadata: Headers): string {
  const sent = metadata.get("request-id");
  return sent !== null && /^[\x21-\x7e]{1,128}$/.test(sent) ? sent : crypto.randomUUID();
}
