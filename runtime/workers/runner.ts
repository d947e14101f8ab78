// The instance's side, in a worker or a process: imports the function, loads it, runs its calls. It must not need a
// permission.
import type { Reply } from "../core/call.ts";
import { describeModel, isModel, type ResolvedModel, resolveModel } from "../core/define.ts";
import { type ModelError, toModelError } from "../core/error.ts";
import { type LoadedModel, loadModel, runCall } from "../core/execute.ts";
import { createLogger, type Logger } from "../core/log.ts";
import { abortReason } from "../core/signal.ts";
import {
  bytesOf,
  type CallData,
  cloneable,
  CREDIT_BYTES,
  fromCallData,
  fromErrorData,
  type FromInstance,
  type Port,
  replyCredit,
  type ReplyData,
  toErrorData,
  type ToInstance,
  toReplyData,
} from "./messages.ts";
import { inTraceOf } from "./trace_context.ts";

/** Which function an instance is of. */
export interface FunctionSource {
  /** From the file's or the folder's name. */
  readonly name: string;
  /** From `NAME@VERSION`. */
  readonly version: string | undefined;
  /** The file's URL: `asset()` resolves against it. */
  readonly base: string;
  /** Only tells what the function is, and does not load it. */
  readonly describeOnly?: boolean;
}

type InstancePort = Port<ToInstance, FromInstance>;

/** Runs a function: `importModule` imports its file. */
export async function runFunction(
  port: InstancePort,
  source: FunctionSource,
  importModule: () => Promise<{ readonly default?: unknown }>,
): Promise<void> {
  const log = boundedLog(port);
  const loading = new AbortController();
  const runner = new Runner(port);
  port.onMessage = (message) => {
    if (message.type === "abort_load") loading.abort(fromErrorData(message.reason));
    else runner.receive(message);
  };
  try {
    const module = await importModule();
    const model = modelOf(module, source);
    port.post({ type: "described", description: describeModel(model) });
    if (source.describeOnly) return;
    runner.start(await loadModel(model, { base: new URL(source.base), signal: loading.signal, log }));
    port.post({ type: "loaded" });
  } catch (error) {
    port.post({ type: "failed", error: toErrorData(toModelError(error, "none")) });
  }
}

/** Log lines of an instance in a second: more would keep its server from everything else. */
const MAX_LOG_LINES = 1_000;

function boundedLog(port: InstancePort): Logger {
  let second = 0;
  let lines = 0;
  return createLogger(({ level, message, fields }) => {
    const now = Math.floor(performance.now() / 1000);
    if (now !== second) {
      const dropped = lines - MAX_LOG_LINES;
      if (dropped > 0) {
        port.post({ type: "log", level: "warn", message: `${dropped} log lines were dropped`, fields: {} });
      }
      second = now;
      lines = 0;
    }
    if (++lines > MAX_LOG_LINES) return;
    const { cause, ...rest } = fields;
    const shown = cause === undefined ? rest : { ...rest, cause: cause instanceof Error ? cause.stack : cause };
    port.post({ type: "log", level, message, fields: cloneable(shown) });
  });
}

/** The model that a function's file exports; throws what is wrong with it. */
export function modelOf(module: { readonly default?: unknown }, { name, version }: FunctionSource): ResolvedModel {
  if (isModel(module.default)) return resolveModel(module.default, name, version);
  throw new TypeError(
    `Cannot serve the file: its default export ${
      "default" in module ? "is not what defineModel({...}) returns" : "is missing"
    }`,
  );
}

interface RunningCall {
  readonly controller: AbortController;
  readonly items: readonly AbortController[];
  /** Replies that may be ahead of their reader. */
  readonly credit: number;
  /** Bytes of each reply that the reader has not taken yet. */
  readonly ahead: number[];
  aheadBytes: number;
  wake: () => void;
}

class Runner {
  readonly #port: InstancePort;
  readonly #calls = new Map<number, RunningCall>();
  #target: LoadedModel | undefined;

  constructor(port: InstancePort) {
    this.#port = port;
  }

  start(target: LoadedModel): void {
    this.#target = target;
  }

  receive(message: Exclude<ToInstance, { readonly type: "abort_load" }>): void {
    switch (message.type) {
      case "call":
        return void inTraceOf(message.call.metadata, () => this.#run(message.id, message.call));
      case "credit":
        return this.#onCredit(message.id, message.count);
      case "cancel": {
        const call = this.#calls.get(message.id);
        const controller = message.item === undefined ? call?.controller : call?.items[message.item];
        controller?.abort(fromErrorData(message.reason));
        call?.wake();
        return;
      }
      case "session_end": {
        const { snapshot, reason } = message;
        return void this.#answer(message.id, ({ model }) => model.handlers.close?.({ ...snapshot }, reason));
      }
      case "unload":
        return void this.#answer(0, ({ model, loaded }) => model.handlers.unload?.(loaded));
      case "ping":
        return this.#port.post({ type: "done", id: message.id });
    }
  }

  async #run(id: number, data: CallData): Promise<void> {
    const items = data.kind === "batch" ? data.items.map(() => new AbortController()) : [];
    const call: RunningCall = {
      controller: new AbortController(),
      items,
      credit: replyCredit(data),
      ahead: [],
      aheadBytes: 0,
      wake: () => {},
    };
    this.#calls.set(id, call);
    const { signal } = call.controller;
    const run = runCall(this.#target!, fromCallData(data, signal, (index) => items[index]!.signal));
    let isSettled = false;
    const settled = run.settled.then(() => {
      isSettled = true;
    });
    const replies = run.replies[Symbol.asyncIterator]();
    let error: ModelError | undefined;
    let told = false;
    try {
      for (let next = await replies.next(); !next.done;) {
        const reply = next.value;
        if (isFinal(reply)) {
          // The end rides on the last reply: one message for a whole answer.
          next = await replies.next();
          told = next.done === true && await endsAtOnce(settled, () => isSettled);
          this.#send(id, call, reply, told);
        } else {
          this.#send(id, call, reply, false);
          await this.#credit(call, signal);
          next = await replies.next();
        }
      }
    } catch (thrown) {
      error = toModelError(thrown, data.id);
      told = false; // the last reply could not be sent
      await replies.return?.();
    }
    if (!told) {
      told = await endsAtOnce(settled, () => isSettled);
      this.#port.post({ type: "end", id, ...error && { error: toErrorData(error) }, settled: told });
      if (!told) {
        await settled;
        this.#port.post({ type: "settled", id });
      }
    }
    this.#calls.delete(id);
  }

  #send(id: number, call: RunningCall, reply: Reply, end: boolean): void {
    const data: ReplyData = toReplyData(reply);
    const bytes = bytesOf(data);
    call.ahead.push(bytes);
    call.aheadBytes += bytes;
    this.#port.post({ type: "reply", id, reply: data, end });
  }

  // Waits until the reader has taken enough of what was sent ahead.
  async #credit(call: RunningCall, signal: AbortSignal): Promise<void> {
    while (call.ahead.length >= call.credit || call.aheadBytes >= CREDIT_BYTES) {
      if (signal.aborted) throw abortReason(signal);
      await new Promise<void>((resolve) => call.wake = resolve);
    }
  }

  #onCredit(id: number, count: number): void {
    const call = this.#calls.get(id);
    if (!call) return;
    for (const bytes of call.ahead.splice(0, count)) call.aheadBytes -= bytes;
    call.wake();
  }

  async #answer(id: number, action: (target: LoadedModel) => unknown): Promise<void> {
    let error: ModelError | undefined;
    try {
      if (this.#target) await action(this.#target);
    } catch (thrown) {
      error = toModelError(thrown, "none");
    }
    this.#port.post({ type: "done", id, ...error && { error: toErrorData(error) } });
  }
}

// A handler that ends with its replies has settled within a few microtasks.
async function endsAtOnce(settled: Promise<void>, isSettled: () => boolean): Promise<boolean> {
  for (let i = 0; i < 5 && !isSettled(); i++) await Promise.race([settled, undefined]);
  return isSettled();
}

function isFinal(reply: Reply): boolean {
  return (reply.type === "tensors" || reply.type === "delta") && reply.final === true;
}

/** What an instance says of a failure that no call waits for. */
export function crashOf(thrown: unknown): FromInstance {
  return { type: "crashed", error: toErrorData(toModelError(thrown, "none")) };
}
