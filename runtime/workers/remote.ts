// The server's side of an instance in a worker or a process.
import type { Call, Reply, SessionSnapshot } from "../core/call.ts";
import type { ModelDescription, SessionEnd } from "../core/define.ts";
import { ModelError } from "../core/error.ts";
import type { Run } from "../core/execute.ts";
import type { Logger } from "../core/log.ts";
import { abortReason, within } from "../core/signal.ts";
import { type Instance, lostInstance } from "./instance.ts";
import {
  bytesOf,
  CREDIT_BYTES,
  fromErrorData,
  type FromInstance,
  fromReplyData,
  type Port,
  replyCredit,
  toCallData,
  toErrorData,
  type ToInstance,
} from "./messages.ts";

/** The connection to an instance. */
export interface RemotePort extends Port<FromInstance, ToInstance> {
  /** Called once, when the instance is gone without having been asked to. */
  onGone: (why: ModelError) => void;
  /** Ends the instance at once; `isSilent`: it did not answer in time. A promise resolves when nothing is left of it. */
  terminate(isSilent: boolean): void | Promise<void>;
}

/** The options of {@linkcode startRemote}. */
export interface RemoteOptions {
  /** In failures. */
  readonly name: string;
  /** Its lines carry the function's name. */
  readonly log: Logger;
  /** Told what the instance's file is; what it throws fails the start. */
  readonly onDescribed?: (description: ModelDescription) => void;
  /** Makes an error's text fit for the log: names a permission that is missing. */
  readonly explain?: (error: ModelError) => ModelError;
}

const ENDED: ModelError = new ModelError("cancelled", "The reader of this call left");

/** What a load that was aborted gets before its instance is ended. */
const ABORT_LOAD_MS = 1_000;

/** Waits until the function is loaded. */
export async function startRemote(port: RemotePort, options: RemoteOptions, signal: AbortSignal): Promise<Instance> {
  const instance = new RemoteInstance(port, options);
  const overdue = Promise.withResolvers<never>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const onAbort = () => {
    const reason = abortReason(signal);
    port.post({ type: "abort_load", reason: toErrorData(reason) });
    timer = setTimeout(() => overdue.reject(reason), ABORT_LOAD_MS);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    options.onDescribed?.(await Promise.race([instance.described, overdue.promise]));
    await Promise.race([instance.loaded, overdue.promise]);
    return instance;
  } catch (error) {
    await port.terminate(signal.aborted);
    throw error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

/** Waits until the function's file is read, and ends the instance. */
export async function describeRemote(port: RemotePort, options: RemoteOptions): Promise<ModelDescription> {
  const instance = new RemoteInstance(port, options);
  instance.loaded.catch(() => {});
  try {
    return await instance.described;
  } finally {
    await port.terminate(false);
  }
}

class RemoteInstance implements Instance {
  readonly isolated = true;
  readonly #described = Promise.withResolvers<ModelDescription>();
  readonly #loaded = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<ModelError | undefined>();
  readonly #port: RemotePort;
  readonly #options: RemoteOptions;
  readonly #runs = new Map<number, RemoteRun>();
  readonly #questions = new Map<number, PromiseWithResolvers<void>>();
  #lastId = 0; // 0 is the unload's
  #gone: ModelError | undefined;
  #isSilent = false;
  #terminated: void | Promise<void> = undefined;

  constructor(port: RemotePort, options: RemoteOptions) {
    this.#port = port;
    this.#options = options;
    port.onMessage = (message) => {
      try {
        this.#receive(message);
      } catch (cause) {
        // A function in a worker can post messages of its own making.
        this.#onGone(this.#lost("sent a message that cannot be read", cause));
      }
    };
    port.onGone = (why) => this.#onGone(why);
    this.#described.promise.catch(() => {});
    this.#loaded.promise.catch(() => {});
  }

  get described(): Promise<ModelDescription> {
    return this.#described.promise;
  }

  get loaded(): Promise<void> {
    return this.#loaded.promise;
  }

  get ended(): Promise<ModelError | undefined> {
    return this.#ended.promise;
  }

  get vanished(): Promise<void> {
    return this.#ended.promise.then(() => this.#terminated);
  }

  run(call: Call): Run {
    if (this.#gone) throw this.#gone;
    const id = ++this.#lastId;
    const run = new RemoteRun(id, call, this.#port, () => this.#runs.delete(id));
    this.#runs.set(id, run);
    return run;
  }

  async endSession(snapshot: SessionSnapshot, reason: SessionEnd): Promise<void> {
    await this.#ask((id) => ({ type: "session_end", id, snapshot, reason }));
  }

  async responds(ms: number): Promise<boolean> {
    this.#isSilent = !await within(ms, this.#ask((id) => ({ type: "ping", id })).catch(() => {}));
    return !this.#isSilent;
  }

  async close(graceMs: number): Promise<void> {
    if (this.#gone) return await this.#terminated;
    const done = Promise.withResolvers<void>();
    this.#questions.set(0, done);
    this.#port.post({ type: "unload" });
    try {
      this.#isSilent = !await within(graceMs, done.promise);
    } finally {
      this.#end(undefined, new ModelError("unavailable", `The instance of function "${this.#options.name}" has ended`));
      await this.#terminated;
    }
  }

  kill(reason: ModelError): void {
    this.#end(reason, reason);
  }

  #ask(message: (id: number) => ToInstance): Promise<void> {
    if (this.#gone) return Promise.reject(this.#gone);
    const id = ++this.#lastId;
    const answer = Promise.withResolvers<void>();
    this.#questions.set(id, answer);
    this.#port.post(message(id));
    return answer.promise;
  }

  #receive(message: FromInstance): void {
    switch (message.type) {
      case "reply":
        return this.#runs.get(message.id)?.onReply(fromReplyData(message.reply), message.end);
      case "end": {
        const error = message.error && this.#explain(message.error);
        return this.#runs.get(message.id)?.onEnd(error, message.settled);
      }
      case "settled":
        return this.#runs.get(message.id)?.settle();
      case "done": {
        const question = this.#questions.get(message.id);
        this.#questions.delete(message.id);
        if (message.error) question?.reject(this.#explain(message.error));
        else question?.resolve();
        return;
      }
      case "log":
        return this.#options.log[message.level](message.message, message.fields);
      case "described":
        return this.#described.resolve(message.description);
      case "loaded":
        return this.#loaded.resolve();
      case "failed":
        return this.#fail(this.#explain(message.error));
      case "crashed":
        return this.#onGone(this.#lost("crashed", this.#explain(message.error).cause));
      case "exiting":
        return this.#onGone(this.#lost("ended itself"));
    }
  }

  #explain(data: Parameters<typeof fromErrorData>[0]): ModelError {
    const error = fromErrorData(data);
    return this.#options.explain?.(error) ?? error;
  }

  #lost(how: string, cause?: unknown): ModelError {
    return lostInstance(this.#options.name, how, cause);
  }

  #fail(error: ModelError): void {
    this.#described.reject(error.cause ?? error);
    this.#loaded.reject(error.cause ?? error);
  }

  #onGone(why: ModelError): void {
    this.#end(why, why);
  }

  #end(failure: ModelError | undefined, why: ModelError): void {
    if (this.#gone) return;
    this.#gone = why;
    this.#terminated = this.#port.terminate(this.#isSilent);
    this.#fail(why);
    this.#ended.resolve(failure); // before its calls: nobody gives their places away
    for (const run of [...this.#runs.values()]) run.onGone(why);
    for (const question of this.#questions.values()) question.reject(why);
    this.#questions.clear();
  }
}

interface Reader {
  resolve(result: IteratorResult<Reply, void>): void;
  reject(reason: unknown): void;
}

/** One call in a remote instance: its replies as they come, credit as they are taken. */
class RemoteRun implements Run, AsyncIterableIterator<Reply, void, undefined> {
  readonly #id: number;
  readonly #call: Call;
  readonly #port: RemotePort;
  readonly #forget: () => void;
  readonly #credit: number;
  readonly #settled = Promise.withResolvers<void>();
  readonly #undo: (() => void)[] = [];
  #queue: Reply[] = [];
  #taken = 0;
  #takenBytes = 0;
  #reader: Reader | undefined;
  #ended = false;
  #failure: { readonly reason: unknown } | undefined;

  constructor(id: number, call: Call, port: RemotePort, forget: () => void) {
    this.#id = id;
    this.#call = call;
    this.#port = port;
    this.#forget = forget;
    const data = toCallData(call);
    this.#credit = replyCredit(data);
    port.post({ type: "call", id, call: data });
    this.#follow(call.signal, () => {
      this.#cancel(abortReason(call.signal));
    });
    if (call.kind !== "batch") return;
    for (const [item, { signal }] of call.items.entries()) {
      if (signal === call.signal) continue;
      this.#follow(signal, () => port.post({ type: "cancel", id, item, reason: toErrorData(abortReason(signal)) }));
    }
  }

  get replies(): AsyncIterable<Reply, void, undefined> {
    return this;
  }

  get settled(): Promise<void> {
    return this.#settled.promise;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Reply, void>> {
    const reply = this.#queue.shift();
    if (reply) {
      this.#grant(reply);
      return Promise.resolve({ done: false, value: reply });
    }
    if (this.#failure) return Promise.reject(this.#failure.reason);
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => this.#reader = { resolve, reject });
  }

  return(): Promise<IteratorResult<Reply, void>> {
    this.#cancel(ENDED);
    return Promise.resolve({ done: true, value: undefined });
  }

  onReply(reply: Reply, end: boolean): void {
    if (!this.#failure) {
      const reader = this.#reader;
      this.#reader = undefined;
      if (reader) {
        reader.resolve({ done: false, value: reply });
        if (!end) this.#grant(reply);
      } else {
        // A sender of ours keeps to its credit, but for the last few.
        if (this.#queue.length >= 2 * this.#credit) throw new RangeError("More replies came than were asked for");
        this.#queue.push(reply);
      }
    }
    if (end) this.onEnd(undefined, true);
  }

  onEnd(error: ModelError | undefined, settled: boolean): void {
    this.#unfollow();
    this.#ended = true;
    if (error) this.#fail(error, this.#queue); // what came before the failure is the reader's
    this.#reader?.resolve({ done: true, value: undefined });
    this.#reader = undefined;
    if (settled) this.settle();
  }

  settle(): void {
    this.#forget();
    this.#settled.resolve();
  }

  onGone(why: ModelError): void {
    if (!this.#ended) this.#fail(why);
    this.#unfollow();
    this.settle();
  }

  #cancel(reason: ModelError): void {
    if (this.#ended || this.#failure) return;
    this.#port.post({ type: "cancel", id: this.#id, reason: toErrorData(reason) });
    this.#fail(reason);
  }

  #fail(reason: unknown, left: Reply[] = []): void {
    if (this.#failure) return;
    this.#failure = { reason };
    this.#queue = left;
    this.#unfollow();
    this.#reader?.reject(reason);
    this.#reader = undefined;
  }

  #grant(reply: Reply): void {
    this.#taken++;
    this.#takenBytes += bytesOf(reply);
    const enough = this.#taken >= this.#credit / 2 || this.#takenBytes >= CREDIT_BYTES / 2;
    if (!enough || this.#ended) return;
    this.#port.post({ type: "credit", id: this.#id, count: this.#taken });
    this.#taken = 0;
    this.#takenBytes = 0;
  }

  #follow(signal: AbortSignal, action: () => void): void {
    if (signal.aborted) return action();
    signal.addEventListener("abort", action, { once: true });
    this.#undo.push(() => signal.removeEventListener("abort", action));
  }

  #unfollow(): void {
    for (const undo of this.#undo.splice(0)) undo();
  }
}
