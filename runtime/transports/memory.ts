// Calls protocols in this process: bytes in, bytes out, no socket. For tests.
import { type ErrorCode, toModelError } from "../core/error.ts";
import type { Logger } from "../core/log.ts";
import { abortReason, NEVER } from "../core/signal.ts";
import type { RpcService } from "../protocols/adapter.ts";
import { requestIdOf, runMethod } from "./run_method.ts";

/** How a call ended. */
export interface MemoryResult {
  readonly messages: readonly Uint8Array[];
  readonly code: "ok" | ErrorCode;
  readonly message: string;
  readonly trailers: Headers;
}

/** The options of one call. */
export interface MemoryCallOptions {
  readonly metadata?: HeadersInit;
  readonly signal?: AbortSignal;
  /** Epoch milliseconds. */
  readonly deadline?: number;
}

/** The options of {@linkcode callInMemory}. */
export interface MemoryOptions {
  readonly draining: AbortSignal;
  readonly maxMessageBytes: number;
  readonly log: Logger;
}

/** Calls `path` ("/package.Service/Method") with serialised messages. */
export async function callInMemory(
  services: readonly RpcService[],
  path: string,
  messages: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  call: MemoryCallOptions,
  options: MemoryOptions,
): Promise<MemoryResult> {
  const [, serviceName, methodName] = path.split("/");
  const method = services.find(({ name }) => name === serviceName)?.methods.find(({ name }) => name === methodName);
  const trailers = new Headers();
  const answers: Uint8Array[] = [];
  if (!method) return { messages: answers, code: "unimplemented", message: `There is no method ${path}`, trailers };
  const metadata = new Headers(call.metadata);
  const id = requestIdOf(metadata);
  const { signal = NEVER } = call;
  async function* requests() {
    for await (const bytes of messages) yield bytes.slice(); // a method may do with its request what it likes
  }
  try {
    const replies = runMethod(method, requests(), {
      id,
      signal,
      deadline: call.deadline,
      metadata,
      responseMetadata: new Headers(),
      trailers,
      origin: { transport: "memory", method: path.slice(1) },
      ...options,
    });
    for await (const bytes of replies) answers.push(bytes);
    return { messages: answers, code: "ok", message: "", trailers };
  } catch (thrown) {
    const error = signal.aborted ? abortReason(signal) : toModelError(thrown, id);
    return { messages: answers, code: error.code, message: error.message, trailers };
  }
}
