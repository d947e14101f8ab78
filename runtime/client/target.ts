// What all calls of a client share: where to, with which function, and what of their options becomes metadata.
import type { AnyModel } from "../core/define.ts";
import { isRequestId } from "../core/request_id.ts";
import type { ParamValue } from "../core/spec.ts";
import type { Bounds } from "./bounds.ts";
import type { Connection, ConnectionOptions } from "./connection.ts";
import { ClientError } from "./error.ts";
import type { RetryPolicy } from "./backoff.ts";

/** The function that a client calls. */
export interface Target {
  readonly connection: Connection;
  /** Of further connections to the same server. */
  readonly connectionOptions: ConnectionOptions;
  /** Aborts when the client is closed. */
  readonly closing: AbortSignal;
  readonly model: string;
  readonly definition: AnyModel | undefined;
  readonly policy: RetryPolicy;
}

/** The options of a call with the types of its params erased. */
export interface Options {
  readonly params?: Readonly<Record<string, ParamValue | undefined>> | undefined;
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  readonly requestId?: string | undefined;
}

/** What bounds an operation; throws `RangeError` for options that cannot be meant. */
export function boundsOf(
  { closing }: Target,
  { timeoutMs, signal, requestId = crypto.randomUUID() }: Options,
): Bounds {
  if (timeoutMs !== undefined && !(timeoutMs >= 0)) {
    throw new RangeError(`Cannot call: timeoutMs is ${timeoutMs}, wanted a number from 0`);
  }
  if (!isRequestId(requestId)) {
    throw new RangeError(
      `Cannot call: requestId is ${JSON.stringify(requestId)}, wanted 1 to 128 printable ASCII characters`,
    );
  }
  const deadline = timeoutMs === undefined ? undefined : Date.now() + timeoutMs;
  return { requestId, deadline, signals: signal ? [closing, signal] : [closing] };
}

/** The metadata of RPCs whose messages name no function and have no place for parameters. */
export function callMetadata(target: Target, options: Options, requestId: string): Record<string, string> {
  return { "model-id": target.model, ...paramMetadata(options.params), ...options.metadata, "request-id": requestId };
}

/** Parameters as text; those that are undefined are not sent. */
export function paramTexts(params: Options["params"] = {}): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const [name, value] of Object.entries(params)) if (value !== undefined) texts[name] = String(value);
  return texts;
}

function paramMetadata(params: Options["params"]): Record<string, string> {
  const metadata: Record<string, string> = {};
  for (const [name, text] of Object.entries(paramTexts(params))) {
    if (!/^[\w.-]+$/.test(name) || !/^[\x20-\x7e]*$/.test(text)) {
      throw new ClientError(
        "invalid_argument",
        `Cannot send param ${JSON.stringify(name)}: it goes as metadata, so name and value have to be ASCII`,
      );
    }
    metadata[`param-${name.toLowerCase()}`] = text;
  }
  return metadata;
}
