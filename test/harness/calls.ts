// What unit tests need to make calls by hand and to read their replies.
import type {
  BatchCall,
  BatchCallItem,
  CallBase,
  CallParams,
  ChatCall,
  Invoke,
  PredictCall,
  Reply,
  StreamCall,
} from "../../runtime/core/call.ts";
import { type AnyModel, resolveModel } from "../../runtime/core/define.ts";
import { type ErrorCode, ModelError } from "../../runtime/core/error.ts";
import { createExecutor } from "../../runtime/core/execute.ts";
import { createLogger, type Logger, type LogRecord } from "../../runtime/core/log.ts";
import { type AnyTensor, type NamedTensors, tensor } from "../../runtime/core/tensor.ts";
import { NO_VALUES } from "../../runtime/core/values.ts";
import { assertEquals, assertInstanceOf, assertStringIncludes, fail } from "../assert.ts";

export const NEVER: AbortSignal = new AbortController().signal;
export const SILENT: Logger = createLogger(() => {});

/** A logger and what it wrote. */
export function recordLog(): { readonly log: Logger; readonly records: LogRecord[] } {
  const records: LogRecord[] = [];
  return { log: createLogger((record) => records.push(record)), records };
}

type Options<C extends CallBase> = Partial<Omit<C, "kind">>;

function base(): CallBase {
  return {
    id: "call-1",
    model: "model",
    version: undefined,
    params: {},
    maxTokens: undefined,
    signal: NEVER,
    deadline: undefined,
    metadata: new Headers(),
    values: NO_VALUES,
  };
}

export function predictCall(options: Options<PredictCall> = {}): PredictCall {
  return { ...base(), input: {}, ...options, kind: "predict" };
}

export function streamCall(options: Options<StreamCall> = {}): StreamCall {
  return { ...base(), input: {}, ...options, kind: "stream" };
}

export function batchCall(items: readonly BatchCallItem[], options: Options<BatchCall> = {}): BatchCall {
  return { ...base(), ...options, kind: "batch", items };
}

export function batchItem(id: string, input: NamedTensors = {}, params: CallParams = {}): BatchCallItem {
  return { id, input, params, signal: NEVER };
}

export function chatCall(content: string, options: Options<ChatCall> = {}): ChatCall {
  const message = { role: "user", content } as const;
  return { ...base(), sessionId: "session-1", session: undefined, message, ...options, kind: "chat" };
}

/** One unnamed float32 tensor as a call's input. */
export function floats(...values: readonly number[]): NamedTensors {
  return { "0": tensor("float32", values) as AnyTensor };
}

/** The executor of a definition whose `load` is not run. */
export function executorOf(definition: AnyModel, loaded?: unknown, log: Logger = SILENT): Invoke {
  return createExecutor({ model: resolveModel(definition, "model"), loaded, log });
}

export async function collect<T>(iterable: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of iterable) all.push(one);
  return all;
}

/** The texts of a call's deltas; the last with "." where it is marked final. */
export function textsOf(replies: readonly Reply[]): string[] {
  return replies.flatMap((reply) => reply.type === "delta" ? [reply.final ? `${reply.text}.` : reply.text] : []);
}

/** Asserts that `action` throws or rejects with a `ModelError` of this code whose message includes `text`. */
export async function assertFails(code: ErrorCode, text: string, action: () => unknown): Promise<ModelError> {
  let thrown: unknown;
  try {
    await action();
  } catch (error) {
    thrown = error;
  }
  if (thrown === undefined) fail(`Expected a failure with code ${code}`);
  assertInstanceOf(thrown, ModelError);
  assertStringIncludes(thrown.message, text);
  assertEquals(thrown.code, code, thrown.message);
  return thrown;
}
