import type { CallKind, ChatMessage } from "./call.ts";
import type { BatchContext, BatchItem, ChatContext, Context, LoadContext, Session, StreamContext } from "./context.ts";
import type { ModelError } from "./error.ts";
import { nearest } from "./nearest.ts";
import {
  checkIoSpec,
  checkParamSpecs,
  type Inits,
  type IoSpec,
  isSingleSpec,
  type NamedSpec,
  namedSpecs,
  type Params,
  type ParamSpecs,
  type Values,
} from "./spec.ts";
import { hasBatchDim } from "./stack.ts";
import type { AnyTensor } from "./tensor.ts";

/** A value, or the promise of one. */
export type MaybePromise<T> = T | Promise<T>;

/** What a handler gets: without an `input` spec the tensors in wire order. */
export type Inputs<I extends IoSpec | undefined> = I extends IoSpec ? Values<I> : readonly AnyTensor[];
/** What a handler returns: without an `output` spec one tensor or a list. */
export type Outputs<O extends IoSpec | undefined> = O extends IoSpec ? Inits<O> : AnyTensor | readonly AnyTensor[];
/** A handler's params: without `params`, whatever strings the caller sent. */
export type ParamsOf<P extends ParamSpecs | undefined> = P extends ParamSpecs ? Params<P>
  : Readonly<Record<string, string>>;
/** What `stream` yields: a token, a token known to be the last, or tensors. */
export type Chunk<O extends IoSpec | undefined> =
  | string
  | { readonly token: string; readonly final: boolean }
  | Outputs<O>;
/** Why a session ended. */
export type SessionEnd = "idle" | "evicted" | "shutdown" | "replaced" | "ended";
/** Yielded chunks, or nothing when `emit` was used. */
export type Emitted<C> = AsyncIterable<C, void, undefined> | Promise<void>;

/**
 * How single requests that come at the same time are gathered: into one call of `batch`, or, without a `batch` handler,
 * stacked along their first dim into one call of `predict`. A lone caller never waits.
 */
export interface BatchingOptions {
  /** The most requests of one batch; also the chunk of a BatchPredict stream. */
  readonly maxSize: number;
  /** The longest that a request waits for others while the function has nothing to do, in milliseconds. @default {5} */
  readonly maxDelayMs?: number;
  /** Sizes that the function is fastest at: a batch leaves as soon as it has one of them. @default {[]} */
  readonly preferred?: readonly number[];
}

/** The same with its defaults filled in. */
export type Batching = Required<BatchingOptions>;

/** How long a conversation is kept and how much of it. */
export interface SessionOptions<S> {
  /** The state of a new session; structured-cloneable. */
  readonly init: () => S;
  /** Milliseconds after its last stream has gone. @default {60_000} */
  readonly idleMs?: number;
  /** Turns of history that the handler sees. @default {100} */
  readonly maxTurns?: number;
  /** Characters of history that the handler sees. @default {100_000} */
  readonly maxCharacters?: number;
}

/** The options of {@linkcode defineModel}: at least one of the four handlers. */
export interface ModelOptions<
  I extends IoSpec | undefined,
  O extends IoSpec | undefined,
  P extends ParamSpecs | undefined,
  M,
  S,
> {
  /** What callers ask for. @default the file's name */
  readonly name?: string;
  /** What callers may ask for as `name@version`. @default {"1"} */
  readonly version?: string;
  /** One line for listings. */
  readonly description?: string;
  /** Without it the model is untyped: tensors in wire order. */
  readonly input?: I;
  /** Without it `predict` returns one tensor or a list. */
  readonly output?: O;
  /** Without them `ctx.params` is whatever texts the caller sent. */
  readonly params?: P;
  /** Needs a `batch` handler, or a `predict` whose inputs and outputs are declared with a first dim of -1. */
  readonly batching?: BatchingOptions;
  /** Needs a `chat` handler. */
  readonly session?: SessionOptions<S>;
  /** Runs once, before any call. Write it above the handlers: it types `ctx.model`. */
  load?(ctx: LoadContext): MaybePromise<M>;
  /** Runs once at the end: frees what `load` made. */
  unload?(model: M): MaybePromise<void>;
  /** One request, one answer. */
  predict?(input: Inputs<I>, ctx: Context<M, ParamsOf<P>>): MaybePromise<Outputs<O>>;
  /** Yields tokens (strings), or tensors by the output spec. */
  stream?(input: Inputs<I>, ctx: StreamContext<M, ParamsOf<P>, Chunk<O>>): Emitted<Chunk<O>>;
  /** Same length and order as `items`; a `ModelError` fails its item only. */
  batch?(
    items: readonly BatchItem<Inputs<I>, ParamsOf<P>>[],
    ctx: BatchContext<M>,
  ): MaybePromise<readonly (Outputs<O> | ModelError)[]>;
  /** One turn: yields the answer's pieces. */
  chat?(message: ChatMessage, ctx: ChatContext<M, ParamsOf<P>, S>): Emitted<string>;
  /** Runs once when a session ends. */
  close?(session: Session<S>, reason: SessionEnd): MaybePromise<void>;
}

/** What {@linkcode defineModel} returns and a function's file exports by default. */
export interface ModelDefinition<
  I extends IoSpec | undefined,
  O extends IoSpec | undefined,
  P extends ParamSpecs | undefined,
  M,
  S,
> {
  /** For the runtime, not for users. */
  readonly "~model": Readonly<ModelOptions<I, O, P, M, S>>;
}

/** Any model's definition. */
// deno-lint-ignore no-explicit-any
export type AnyModel = ModelDefinition<any, any, any, any, any>;

/** What a caller sends to the model. */
export type InferInput<T extends AnyModel> = T extends ModelDefinition<infer I, infer _O, infer _P, infer _M, infer _S>
  ? (I extends IoSpec ? Inits<I> : readonly AnyTensor[])
  : never;

/** What a caller gets from the model. */
export type InferOutput<T extends AnyModel> = T extends ModelDefinition<infer _I, infer O, infer _P, infer _M, infer _S>
  ? (O extends IoSpec ? Values<O> : readonly AnyTensor[])
  : never;

/**
 * Defines a function: handlers for some of the four kinds of call, and what they take and give. The file's name is
 * the model's name; the file exports the definition by default.
 *
 * Throws `TypeError` or `RangeError` where the definition cannot be meant.
 *
 * @example
 * ```ts
 * import { defineModel, mapNumeric } from "tensorlet";
 *
 * export const affine = defineModel({
 *   input: { dtype: "any" },
 *   predict: (x) => mapNumeric(x, (v) => v * 2 + 10, (v) => v * 2n + 10n),
 * });
 * ```
 */
export function defineModel<
  const I extends IoSpec | undefined = undefined,
  const O extends IoSpec | undefined = undefined,
  const P extends ParamSpecs | undefined = undefined,
  M = undefined,
  S = undefined,
>(options: ModelOptions<I, O, P, M, S>): ModelDefinition<I, O, P, M, S> {
  const { name, version, input, output, params, batching, session } = options;
  for (const key of Object.keys(options)) {
    if ((OPTION_NAMES as readonly string[]).includes(key)) continue;
    const [near] = nearest(key, OPTION_NAMES);
    throw new TypeError(`Cannot define a model: there is no option "${key}"${near ? `; did you mean "${near}"?` : ""}`);
  }
  if (kindsOf(options as Handlers).length === 0) {
    throw new TypeError("Cannot define a model: it has no handler, wanted predict, stream, batch or chat");
  }
  if (name !== undefined) checkName(name);
  if (version !== undefined && !/^[\w.-]{1,64}$/.test(version)) {
    throw new RangeError(
      `Cannot define a model: version is ${JSON.stringify(version)}, wanted letters, digits, ".", "_" and "-"`,
    );
  }
  if (input) checkIoSpec(input, "input");
  if (output) checkIoSpec(output, "output");
  if (params) checkParamSpecs(params);
  if (batching) checkBatching(batching, options as Handlers, input, output);
  if (session) {
    if (!options.chat) throw new TypeError("Cannot define a model: session is set without a chat handler");
    checkPositive("session.idleMs", session.idleMs ?? 0, 0);
    checkPositive("session.maxTurns", session.maxTurns ?? 1, 1);
    checkPositive("session.maxCharacters", session.maxCharacters ?? 1, 1);
  }
  if (options.close && !options.chat) throw new TypeError("Cannot define a model: close is set without a chat handler");
  return Object.freeze({ "~model": Object.freeze({ ...options }) });
}

function checkBatching(
  { maxSize, maxDelayMs, preferred }: BatchingOptions,
  { predict, batch }: Handlers,
  input: IoSpec | undefined,
  output: IoSpec | undefined,
): void {
  const canStack = predict && hasBatchDim(input && namedSpecs(input)) && hasBatchDim(output && namedSpecs(output));
  if (!batch && !canStack) {
    throw new TypeError(
      "Cannot define a model: batching is set without a batch handler, and without a predict whose inputs and outputs " +
        "are all declared with a first dim of -1",
    );
  }
  checkPositive("batching.maxSize", maxSize, 1);
  checkPositive("batching.maxDelayMs", maxDelayMs ?? 5, 0);
  for (const size of preferred ?? []) checkPositive("batching.preferred", size, 1);
}

// `deno run` does not check types: a misspelt spec would switch its checks off without a word.
const OPTION_NAMES = [
  "name",
  "version",
  "description",
  "input",
  "output",
  "params",
  "batching",
  "session",
  "load",
  "unload",
  "predict",
  "stream",
  "batch",
  "chat",
  "close",
] as const satisfies readonly (keyof ModelOptions<undefined, undefined, undefined, undefined, undefined>)[];

/** Throws `RangeError` unless `name` can name a model. */
export function checkName(name: string): void {
  if (/^[a-z0-9][a-z0-9_-]*$/.test(name) && name.length <= 100) return;
  throw new RangeError(
    `Cannot name a model ${
      JSON.stringify(name)
    }: wanted lower-case letters, digits, "_" and "-", the first a letter or digit, 100 at most`,
  );
}

function checkPositive(label: string, value: number, min: number): void {
  if (Number.isSafeInteger(value) && value >= min) return;
  throw new RangeError(`Cannot define a model: ${label} is ${value}, wanted a whole number from ${min}`);
}

function kindsOf(options: Pick<Handlers, "predict" | "stream" | "batch" | "chat">): readonly CallKind[] {
  const single = options.predict !== undefined || options.batch !== undefined;
  const kinds: CallKind[] = [];
  if (single) kinds.push("predict");
  if (single || options.stream) kinds.push("stream");
  if (single) kinds.push("batch");
  if (options.chat) kinds.push("chat");
  return kinds;
}

/** A model's handlers with their types erased: the runtime has checked what the types promise. */
export interface Handlers {
  load?(ctx: LoadContext): unknown;
  unload?(model: unknown): unknown;
  predict?(input: unknown, ctx: Context<unknown, unknown>): unknown;
  stream?(input: unknown, ctx: StreamContext<unknown, unknown, unknown>): Emitted<unknown>;
  batch?(items: readonly BatchItem<unknown, unknown>[], ctx: BatchContext<unknown>): unknown;
  chat?(message: ChatMessage, ctx: ChatContext<unknown, unknown, unknown>): Emitted<string>;
  close?(session: Session<unknown>, reason: SessionEnd): unknown;
}

/** What can be known of a model without running it; structured-cloneable. */
export interface ModelDescription {
  readonly name: string;
  readonly version: string;
  readonly description: string | undefined;
  /** Undefined = untyped. */
  readonly input: readonly NamedSpec[] | undefined;
  readonly output: readonly NamedSpec[] | undefined;
  readonly params: ParamSpecs | undefined;
  /** What it can answer, fallbacks included. */
  readonly kinds: readonly CallKind[];
  /** The most items of one batch. */
  readonly maxBatch: number;
  /** Undefined = requests are not gathered. */
  readonly batching: Batching | undefined;
  readonly session: SessionBounds;
  /** Whether a session's end is to be told to it. */
  readonly hasClose: boolean;
}

/** A conversation's bounds with their defaults filled in. */
export interface SessionBounds {
  readonly idleMs: number;
  readonly maxTurns: number;
  readonly maxCharacters: number;
}

/** A definition with its defaults filled in; the runtime sees only this. */
export interface ResolvedModel extends ModelDescription {
  /** One unnamed tensor rather than several by name. */
  readonly singleInput: boolean;
  readonly singleOutput: boolean;
  /** The state of a new session. */
  readonly initSession: () => unknown;
  readonly handlers: Handlers;
}

/** What may leave the model's own event loop. */
export function describeModel(model: ResolvedModel): ModelDescription {
  const { singleInput: _in, singleOutput: _out, initSession: _init, handlers: _handlers, ...description } = model;
  return description;
}

/** Whether `value` is what `defineModel` returns (of any copy of this module). */
export function isModel(value: unknown): value is AnyModel {
  return typeof value === "object" && value !== null && "~model" in value;
}

/** Fills in a definition's defaults; `name` is used where it gives none. */
export function resolveModel(definition: AnyModel, name: string, version = "1"): ResolvedModel {
  const options = definition["~model"] as Readonly<ModelOptions<IoSpec, IoSpec, ParamSpecs, unknown, unknown>>;
  const { input, output, session } = options;
  checkName(options.name ?? name);
  return {
    name: options.name ?? name,
    version: options.version ?? version,
    description: options.description,
    input: input && namedSpecs(input),
    output: output && namedSpecs(output),
    singleInput: input !== undefined && isSingleSpec(input),
    singleOutput: output !== undefined && isSingleSpec(output),
    params: options.params,
    kinds: kindsOf(options as Handlers),
    maxBatch: options.batching?.maxSize ?? 32,
    batching: options.batching && { maxDelayMs: 5, preferred: [], ...options.batching },
    session: {
      idleMs: session?.idleMs ?? 60_000,
      maxTurns: session?.maxTurns ?? 100,
      maxCharacters: session?.maxCharacters ?? 100_000,
    },
    hasClose: options.close !== undefined,
    initSession: session?.init ?? (() => undefined),
    handlers: options as Handlers,
  };
}
