// Runs a function's handlers: the one place that knows which handler answers which kind of call, and the fallbacks.
import { around } from "./around.ts";
import type { BatchCall, BatchCallItem, Call, ChatCall, Invoke, PredictCall, Reply, StreamCall } from "./call.ts";
import { unimplemented } from "./catalog.ts";
import { completeOutput } from "./check.ts";
import { mapConcurrently } from "./concurrent.ts";
import { type BatchContext, type BatchItem, createContext, remainingMs, type Session } from "./context.ts";
import type { ResolvedModel } from "./define.ts";
import { ModelError, toModelError } from "./error.ts";
import { type Logger, withFields } from "./log.ts";
import { abortable, abortReason, linkSignals, throwIfAborted } from "./signal.ts";
import { rowsOf, split, stack, stackKey } from "./stack.ts";
import { ChunkSource } from "./stream.ts";
import { PieceJoiner } from "./text.ts";
import type { NamedTensors } from "./tensor.ts";

/** How many of a batch's items run `predict` at once where there is no `batch` handler. */
const PREDICT_CONCURRENCY = 8;

/** A model that is loaded: its definition, and what its `load` returned. */
export interface LoadedModel {
  readonly model: ResolvedModel;
  readonly loaded: unknown;
  readonly log: Logger;
}

/** What `load` gets. */
export interface LoadOptions {
  /** The function's file: `asset()` resolves against it. */
  readonly base?: URL | undefined;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** Runs the model's `load`. */
export async function loadModel(model: ResolvedModel, { base, signal, log }: LoadOptions): Promise<LoadedModel> {
  const asset = (path: string) => {
    if (base === undefined) throw new TypeError("Cannot resolve an asset: the function has no file");
    return new URL(path, base);
  };
  return { model, loaded: await model.handlers.load?.({ name: model.name, signal, log, asset }), log };
}

/** A call that runs. */
export interface Run {
  readonly replies: AsyncIterable<Reply, void, undefined>;
  /** Resolves when the handler has really ended: one that ignores an abort outlives its replies. */
  readonly settled: Promise<void>;
}

/** Runs a call in this very event loop, and follows its handler beyond the call's end. */
export function runCall(target: LoadedModel, call: Call): Run {
  const settled = Promise.withResolvers<void>();
  let pending = 1; // the replies
  const leave = () => {
    if (--pending === 0) settled.resolve();
  };
  const track = (work: PromiseLike<unknown>) => {
    pending++;
    work.then(leave, leave);
  };
  const replies = around({ values: () => createExecutor({ ...target, track })(call), leave });
  return { replies, settled: settled.promise };
}

interface Tracked extends LoadedModel {
  /** Follows what a handler returned. */
  readonly track?: (work: PromiseLike<unknown>) => void;
}

/** Runs calls in this very event loop. */
export function createExecutor(target: Tracked): Invoke {
  return (call) => {
    if (!target.model.kinds.includes(call.kind)) throw unimplemented(target.model.name, call.kind);
    switch (call.kind) {
      case "predict":
        return predict(target, call);
      case "stream":
        return target.model.handlers.stream ? stream(target, call) : predict(target, call);
      case "batch":
        return batch(target, call);
      case "chat":
        return chat(target, call);
    }
  };
}

async function* predict(target: Tracked, call: PredictCall | StreamCall): AsyncGenerator<Reply, void, undefined> {
  yield { type: "tensors", index: 0, output: await predictOne(target, call, call), final: true };
}

async function predictOne(target: Tracked, call: Call, item: BatchCallItem): Promise<NamedTensors> {
  const { handlers } = target.model;
  if (!handlers.predict) {
    const [outcome] = await runBatch(target, call, [item]);
    if (outcome instanceof ModelError) throw outcome;
    return outcome!;
  }
  const log = call.kind === "batch" ? withFields(logOf(target, call.id), { item: item.id }) : logOf(target, call.id);
  const context = createContext({ ...call, params: item.params }, item.signal, target.loaded, log);
  const returned = await run(
    target,
    item.signal,
    () => handlers.predict!(handlerInput(target.model, item.input), context),
  );
  return complete(target.model, returned);
}

async function* stream(target: Tracked, call: StreamCall): AsyncGenerator<Reply, void, undefined> {
  using linked = linkSignals(call.signal);
  const source = new ChunkSource<unknown>(linked.signal, target.track);
  const emit = (chunk: unknown) => source.emit(chunk);
  const context = { ...createContext(call, linked.signal, target.loaded, logOf(target, call.id)), emit };
  try {
    throwIfAborted(call.signal);
    source.attach(target.model.handlers.stream!(handlerInput(target.model, call.input), context));
    const joiner = new PieceJoiner();
    let index = 0;
    for await (const chunk of source) {
      const reply = toReply(target.model, chunk, index++, call.maxTokens);
      yield reply.type === "delta" ? { ...reply, text: joiner.push(reply.text, reply.final) } : reply;
      if (reply.final) return;
    }
    if (joiner.rest() !== "") yield { type: "delta", index, text: joiner.rest(), final: true };
  } finally {
    // Also for a handler that emits: it has no return() to run.
    linked.abort(new ModelError("cancelled", "The stream has ended"));
  }
}

function toReply(model: ResolvedModel, chunk: unknown, index: number, maxTokens: number | undefined) {
  const last = index + 1 === maxTokens;
  if (typeof chunk === "string") return { type: "delta", index, text: chunk, final: last } as const;
  if (typeof chunk === "object" && chunk !== null && "token" in chunk) {
    const { token, final } = chunk as { token: unknown; final?: boolean };
    if (typeof token !== "string") {
      throw new ModelError("internal", "The function's answer cannot be used: a token is no string");
    }
    return { type: "delta", index, text: token, final: last || final === true } as const;
  }
  return { type: "tensors", index, output: complete(model, chunk), final: last } as const;
}

async function* batch(target: Tracked, call: BatchCall): AsyncGenerator<Reply, void, undefined> {
  using links = new DisposableStack();
  // An item ends with the whole call too: at its deadline, say.
  const items = call.items.map((item) => ({
    ...item,
    signal: links.use(linkSignals(call.signal, item.signal)).signal,
  }));
  const outcomes = await outcomesOf(target, call, items);
  for (const [index, outcome] of outcomes.entries()) {
    if (outcome instanceof ModelError) yield { type: "failure", index, error: outcome };
    else yield { type: "tensors", index, output: outcome };
  }
}

type Outcomes = readonly (NamedTensors | ModelError)[];

async function outcomesOf(target: Tracked, call: BatchCall, items: readonly BatchCallItem[]): Promise<Outcomes> {
  const { handlers, batching } = target.model;
  const alone = () => mapConcurrently(items, PREDICT_CONCURRENCY, (item) => outcomeOf(target, call, item));
  if (!handlers.batch && !(batching && items.length > 1)) return await alone();
  try {
    const outcomes = handlers.batch ? await runBatch(target, call, items) : await runStacked(target, call, items);
    return outcomes ?? await alone();
  } catch (error) {
    throwIfAborted(call.signal);
    if (handlers.batch && !(call.gathered && items.length > 1)) throw error;
    return await alone(); // the one that is to blame fails alone
  }
}

// One predict of all; undefined where the items cannot be stacked, or their answer not be cut apart.
async function runStacked(
  target: Tracked,
  call: BatchCall,
  items: readonly BatchCallItem[],
): Promise<Outcomes | undefined> {
  const [first, ...others] = items as readonly [BatchCallItem, ...BatchCallItem[]];
  const key = stackKey(first);
  if (others.some((item) => stackKey(item) !== key)) return undefined;
  const rows: number[] = [];
  for (const { input } of items) {
    const count = rowsOf(input);
    if (count === undefined) return undefined;
    rows.push(count);
  }
  using linked = linkSignals(call.signal);
  const input = stack(items.map((item) => item.input));
  return split(await predictOne(target, call, { ...first, input, signal: linked.signal }), rows);
}

async function outcomeOf(target: Tracked, call: Call, item: BatchCallItem): Promise<NamedTensors | ModelError> {
  try {
    return await predictOne(target, call, item);
  } catch (error) {
    if (call.signal.aborted) throw abortReason(call.signal);
    return toModelError(error, call.id);
  }
}

async function runBatch(
  target: Tracked,
  call: Call,
  items: readonly BatchCallItem[],
): Promise<readonly (NamedTensors | ModelError)[]> {
  const { model, loaded } = target;
  using linked = linkSignals(call.signal);
  const context: BatchContext<unknown> = {
    signal: linked.signal,
    remainingMs: () => remainingMs(call.deadline),
    model: loaded,
    log: logOf(target, call.id),
  };
  const requests: BatchItem<unknown, unknown>[] = items.map((item) => ({
    input: handlerInput(model, item.input),
    params: item.params,
    requestId: item.id,
    signal: item.signal,
  }));
  const returned = await run(target, linked.signal, () => model.handlers.batch!(requests, context));
  if (!Array.isArray(returned) || returned.length !== items.length) {
    const got = Array.isArray(returned) ? `${returned.length}` : typeof returned;
    throw new ModelError(
      "internal",
      `The function's answer cannot be used: batch gave ${got} results, expected ${items.length}`,
    );
  }
  return returned.map((value) => value instanceof ModelError ? value : complete(model, value));
}

async function* chat(target: Tracked, call: ChatCall): AsyncGenerator<Reply, void, undefined> {
  const { handlers } = target.model;
  using linked = linkSignals(call.signal);
  const source = new ChunkSource<string>(linked.signal, target.track);
  const session: Session<unknown> = {
    id: call.sessionId,
    turn: call.session?.turn ?? 0,
    history: call.session?.history.slice() ?? [],
    // A turn that fails leaves no trace in the state, so the handler works on a copy.
    // One that was cut short in its first turn was saved without a state.
    state: call.session?.state === undefined ? target.model.initSession() : structuredClone(call.session.state),
  };
  const emit = (delta: string) => source.emit(delta);
  const context = { ...createContext(call, linked.signal, target.loaded, logOf(target, call.id)), session, emit };
  try {
    throwIfAborted(call.signal);
    source.attach(handlers.chat!(call.message, context));
    const joiner = new PieceJoiner();
    let index = 0;
    let next = await source.next();
    while (!next.done) {
      const text = next.value;
      if (typeof text !== "string") {
        throw new ModelError("internal", "The function's answer cannot be used: a chat piece is no string");
      }
      const following = source.next();
      const final = await endsAtOnce(following);
      if (final) yield { type: "session", state: cloneState(session.state) };
      yield { type: "delta", index: index++, text: joiner.push(text, final), final };
      if (final) return;
      next = await following;
    }
    yield { type: "session", state: cloneState(session.state) };
    if (joiner.rest() !== "") yield { type: "delta", index, text: joiner.rest(), final: true };
  } finally {
    linked.abort(new ModelError("cancelled", "The turn has ended"));
  }
}

/**
 * Whether a handler's last piece was its last: one that returns right after it does so within a few microtasks, so
 * the end can ride on that piece. One that goes on working is not waited for.
 */
async function endsAtOnce(following: Promise<IteratorResult<unknown, void>>): Promise<boolean> {
  let ended = false;
  let settled = false;
  following.then(({ done }) => (ended = done === true, settled = true), () => (settled = true));
  for (let i = 0; i < 10 && !settled; i++) await undefined;
  return ended;
}

function cloneState(state: unknown): unknown {
  try {
    return structuredClone(state);
  } catch (cause) {
    throw new ModelError("internal", "The session's state cannot be saved: it is not structured-cloneable", { cause });
  }
}

// Runs user code against the call's signal: an abort settles at once, whatever the handler does.
async function run<T>(target: Tracked, signal: AbortSignal, handler: () => T | PromiseLike<T>): Promise<T> {
  throwIfAborted(signal);
  try {
    const returned = handler();
    if (!isPromise(returned)) return returned as T;
    const work = Promise.resolve(returned); // a thenable of one's own may begin its work at each then()
    target.track?.(work);
    return await abortable(work, signal) as T;
  } catch (error) {
    throw signal.aborted ? abortReason(signal) : error;
  }
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value;
}

function handlerInput(model: ResolvedModel, input: NamedTensors): unknown {
  if (model.input === undefined) return Object.values(input);
  return model.singleInput ? input["0"] : input;
}

function complete(model: ResolvedModel, returned: unknown): NamedTensors {
  return completeOutput(model.output, model.singleOutput, returned);
}

function logOf(target: LoadedModel, requestId: string): Logger {
  return withFields(target.log, { requestId });
}
