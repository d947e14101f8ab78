// What the modes of `call` share.
import type { CallOptions, Client } from "../client.ts";
import { ConfigError } from "../host/error.ts";
import type { CallConfig } from "./arguments.ts";
import type { Output } from "./output.ts";

/** One run of the command. */
export interface Run {
  readonly config: CallConfig;
  readonly client: Client;
  readonly output: Output;
  /** Aborts when the user interrupts. */
  readonly signal: AbortSignal;
}

/** What comes from stdin, until the user interrupts. */
export function stdin({ signal }: Run): ReadableStream<Uint8Array<ArrayBuffer>> {
  return Deno.stdin.readable.pipeThrough(new TransformStream(), { signal, preventCancel: true });
}

/** What every call takes. */
export function callOptions({ config, signal }: Run): CallOptions {
  const { params, timeoutMs } = config;
  const { "request-id": requestId, ...metadata } = config.metadata;
  return {
    params,
    metadata,
    signal,
    ...requestId !== undefined && { requestId },
    ...timeoutMs !== undefined && { timeoutMs },
  };
}

/** The options of one request: a text that is no tensor is its prompt. Throws `ConfigError`. */
export function requestOptions(run: Run, text: string | undefined): CallOptions {
  const options = callOptions(run);
  if (text === undefined) return options;
  if ("prompt" in run.config.params) {
    throw new ConfigError("Cannot send a text and --param prompt=...: the text is that parameter");
  }
  return { ...options, params: { ...run.config.params, prompt: text } };
}
