/**
 * Unit tests of handlers, and of whole servers, with no network.
 *
 * @module
 */
import { assemble, type Assembly, DEFAULT_LIMITS, type Limits } from "./assembly.ts";
import type { Call, Interceptor, Reply } from "./core/call.ts";
import { fillShape, isTensorLike } from "./core/check.ts";
import type { Session } from "./core/context.ts";
import { type AnyModel, type ModelDefinition, type ParamsOf, type ResolvedModel, resolveModel } from "./core/define.ts";
import { type ErrorCode, ModelError } from "./core/error.ts";
import { createLogger, type Logger, type LogRecord } from "./core/log.ts";
import { Registry } from "./core/registry.ts";
import { NEVER } from "./core/signal.ts";
import type { Inits, IoSpec, ParamSpecs, Values } from "./core/spec.ts";
import type { AnyTensor, NamedTensors } from "./core/tensor.ts";
import { NO_VALUES } from "./core/values.ts";
import { InstanceMetrics } from "./middleware/metrics_instances.ts";
import { sessionKey } from "./middleware/session.ts";
import { MemorySessionStore } from "./middleware/session_store.ts";
import { inlinePool } from "./workers/inline.ts";
import type { ProtocolAdapter } from "./protocols/adapter.ts";
import type { App } from "./transports/http/app.ts";
import { callInMemory } from "./transports/memory.ts";

export type { ErrorCode } from "./core/error.ts";
export type { Interceptor } from "./core/call.ts";
export type { LogRecord } from "./core/log.ts";
export type { ProtocolAdapter } from "./protocols/adapter.ts";

/** The options of one call to a harness. */
export interface TestCallOptions<P> {
  /** The call's parameters. */
  readonly params?: Partial<P>;
  /** Cancels the call. */
  readonly signal?: AbortSignal;
  /** Milliseconds until the call's deadline. */
  readonly timeoutMs?: number;
  /** The request id. @default a random one */
  readonly requestId?: string;
  /** Request metadata. */
  readonly metadata?: HeadersInit;
}

/** The options of {@linkcode testModel}. */
export interface TestModelOptions<M> {
  /** Used instead of running `load`: no weights in unit tests. */
  readonly model?: M;

  /** The model's name. @default {"model"} */
  readonly name?: string;
}

/** What a harness takes: as a handler returns it, bare arrays or whole tensors. */
export type TestInput<I extends IoSpec | undefined> = I extends IoSpec ? Inits<I> : readonly AnyTensor[];
/** What a harness gives: whole tensors. */
export type TestOutput<O extends IoSpec | undefined> = O extends IoSpec ? Values<O> : readonly AnyTensor[];

/** One conversation with a model under test. */
export interface ChatHarness<P, S> {
  /** As stored after the last turn. */
  readonly session: Session<S>;
  /** One turn, piece by piece. */
  send(text: string, options?: TestCallOptions<P>): AsyncIterable<string>;
  /** One turn, its pieces joined. */
  sendAll(text: string, options?: TestCallOptions<P>): Promise<string>;
}

/** A model under test. Calls reject with a `ModelError`; what a handler threw is its `cause`. */
export interface ModelHarness<
  I extends IoSpec | undefined,
  O extends IoSpec | undefined,
  P extends ParamSpecs | undefined,
  S,
> extends AsyncDisposable {
  /** One request, one answer. */
  predict(input: TestInput<I>, options?: TestCallOptions<ParamsOf<P>>): Promise<TestOutput<O>>;
  /** Tokens as strings; tensors where the handler yields tensors. */
  stream(
    input: TestInput<I>,
    options?: TestCallOptions<ParamsOf<P>> & { readonly maxTokens?: number },
  ): AsyncIterable<string | TestOutput<O>>;
  /** Many requests at once; one that fails is its `ModelError`. */
  batch(
    inputs: readonly TestInput<I>[],
    options?: TestCallOptions<ParamsOf<P>>,
  ): Promise<readonly (TestOutput<O> | ModelError)[]>;
  /** A conversation; by default a new one. */
  chat(sessionId?: string): ChatHarness<ParamsOf<P>, S>;
  /** What the handlers and the runtime logged. */
  readonly logs: readonly LogRecord[];
}

/**
 * Runs a model's handlers behind the real core (checks, deadlines, sessions, fallbacks): only transport and protocol
 * are left out. Needs no permission.
 *
 * @example
 * ```ts
 * import { defineModel } from "tensorlet";
 * import { testModel } from "tensorlet/testing";
 *
 * const double = defineModel({
 *   input: { dtype: "float32" },
 *   output: { dtype: "float32" },
 *   predict: (x) => x.data.map((v) => v * 2),
 * });
 * await using model = await testModel(double);
 * const { data } = await model.predict(new Float32Array([1.5]));
 * console.assert(data[0] === 3);
 * ```
 */
export async function testModel<
  I extends IoSpec | undefined,
  O extends IoSpec | undefined,
  P extends ParamSpecs | undefined,
  M,
  S,
>(definition: ModelDefinition<I, O, P, M, S>, options: TestModelOptions<M> = {}): Promise<ModelHarness<I, O, P, S>> {
  const logs: LogRecord[] = [];
  const log = createLogger((record) => logs.push(record));
  const model = resolveModel(definition, options.name ?? "model");
  const registry = new Registry(log);
  const injected = "model" in options && { loaded: { value: options.model } };
  registry.add(inlinePool(model, { ...injected, abandons: true, log }));
  const store = new MemorySessionStore();
  const assembly = assemble({ ...DEFAULT_LIMITS, registry, adapters: [], interceptors: [], sessionStore: store, log });
  await registry.loadWarm();
  const target: Target = { model, assembly, store };
  const harness: ModelHarness<IoSpec | undefined, IoSpec | undefined, ParamSpecs | undefined, unknown> = {
    logs,
    predict: (input, options) => predict(target, input, options),
    stream: (input, options) => stream(target, input, options),
    batch: (inputs, options) => batch(target, inputs, options),
    chat: (sessionId = crypto.randomUUID()) => new Chat(target, sessionId),
    [Symbol.asyncDispose]: () => assembly.close(),
  };
  return harness as unknown as ModelHarness<I, O, P, S>;
}

interface Target {
  readonly model: ResolvedModel;
  readonly assembly: Assembly;
  readonly store: MemorySessionStore;
}

type AnyOptions = TestCallOptions<Readonly<Record<string, unknown>>> & { readonly maxTokens?: number };

function callBase(
  { model }: Target,
  options: AnyOptions = {},
): Omit<Extract<Call, { kind: "predict" }>, "kind" | "input"> {
  return {
    id: options.requestId ?? crypto.randomUUID(),
    model: model.name,
    version: model.version,
    params: { ...options.params } as Call["params"],
    maxTokens: options.maxTokens,
    signal: options.signal ?? NEVER,
    deadline: options.timeoutMs === undefined ? undefined : Date.now() + options.timeoutMs,
    metadata: new Headers(options.metadata),
    values: NO_VALUES,
  };
}

async function predict(target: Target, input: unknown, options?: AnyOptions): Promise<never> {
  const call = { ...callBase(target, options), kind: "predict", input: toInput(target.model, input) } as const;
  for await (const reply of target.assembly.invoke(call)) {
    if (reply.type === "tensors") return toOutput(target.model, reply.output) as never;
  }
  throw new ModelError("internal", "The function gave no answer");
}

async function* stream(target: Target, input: unknown, options?: AnyOptions): AsyncGenerator<never, void, undefined> {
  const call = { ...callBase(target, options), kind: "stream", input: toInput(target.model, input) } as const;
  for await (const reply of target.assembly.invoke(call)) {
    if (reply.type === "delta") yield reply.text as never;
    if (reply.type === "tensors") yield toOutput(target.model, reply.output) as never;
  }
}

async function batch(target: Target, inputs: readonly unknown[], options?: AnyOptions): Promise<never[]> {
  const base = callBase(target, options);
  const items = inputs.map((input, i) => ({
    id: `${i}`,
    input: toInput(target.model, input),
    params: base.params,
    signal: base.signal,
  }));
  const results: unknown[] = [];
  for await (const reply of target.assembly.invoke({ ...base, kind: "batch", items })) {
    if (reply.type === "tensors") results[reply.index] = toOutput(target.model, reply.output);
    if (reply.type === "failure") results[reply.index] = reply.error;
  }
  return results as never[];
}

class Chat implements ChatHarness<Readonly<Record<string, unknown>>, unknown> {
  readonly #target: Target;
  session: Session<unknown>;

  constructor(target: Target, id: string) {
    this.#target = target;
    this.session = { id, turn: 0, history: [], state: target.model.initSession() };
  }

  async *send(text: string, options?: AnyOptions): AsyncGenerator<string, void, undefined> {
    const { id } = this.session;
    const message = { role: "user", content: text } as const;
    const base = callBase(this.#target, options);
    try {
      const replies: AsyncIterable<Reply> = this.#target.assembly.invoke({
        ...base,
        kind: "chat",
        sessionId: id,
        message,
        session: undefined,
      });
      for await (const reply of replies) if (reply.type === "delta" && reply.text !== "") yield reply.text;
    } finally {
      const stored = await this.#target.store.load(sessionKey(this.#target.model.name, id));
      if (stored) this.session = { ...stored.snapshot };
    }
  }

  async sendAll(text: string, options?: AnyOptions): Promise<string> {
    let answer = "";
    for await (const piece of this.send(text, options)) answer += piece;
    return answer;
  }
}

function toInput(model: ResolvedModel, input: unknown): NamedTensors {
  if (model.input === undefined) return Object.fromEntries((input as readonly AnyTensor[]).entries());
  const record = model.singleInput ? { "0": input } : input as Record<string, unknown>;
  const tensors: Record<string, AnyTensor> = {};
  for (const { name, dtype, shape } of model.input) {
    const value = record[name];
    if (value === undefined) continue;
    if (isTensorLike(value)) {
      tensors[name] = value;
    } else {
      const { length } = value as ArrayLike<unknown>;
      tensors[name] = { dtype, data: value, shape: fillShape(shape ?? [-1], length) ?? [length] } as AnyTensor;
    }
  }
  return tensors;
}

function toOutput(model: ResolvedModel, output: NamedTensors): unknown {
  if (model.output === undefined) return Object.values(output);
  return model.singleOutput ? output["0"] : output;
}

/** How a call to a {@linkcode TestServer} ended. */
export interface TestRpcResult {
  /** The answer's messages, serialised. */
  readonly messages: readonly Uint8Array[];
  /** The status. */
  readonly code: "ok" | ErrorCode;
  /** The status' text. */
  readonly message: string;
  /** Sent with the status. */
  readonly trailers: Headers;
}

/** A whole server without sockets: bytes in, bytes out. */
export interface TestServer extends AsyncDisposable {
  /** Calls "/package.Service/Method" with serialised messages. */
  rpc(
    path: string,
    messages: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
    options?: { readonly metadata?: HeadersInit; readonly signal?: AbortSignal; readonly timeoutMs?: number },
  ): Promise<TestRpcResult>;
  /** Answers an HTTP request. */
  fetch(request: Request): Promise<Response>;
}

/** The options of {@linkcode createTestServer}. */
export interface TestServerOptions {
  /** Bounds that differ from their defaults. */
  readonly limits?: Partial<Limits>;
  /** Instead of the built-in protocols. */
  readonly adapters?: readonly ProtocolAdapter[];
  /** Around every call; the first is outermost. */
  readonly interceptors?: readonly Interceptor[];
  /** Where log records go. @default nowhere */
  readonly log?: Logger;
}

/** Serves definitions by name, with the real protocols and no socket. May read `protos/`. */
export async function createTestServer(
  models: Readonly<Record<string, AnyModel>>,
  options: TestServerOptions = {},
): Promise<TestServer> {
  const log = options.log ?? createLogger(() => {});
  const registry = new Registry(log);
  const instanceMetrics = new InstanceMetrics();
  for (const [name, definition] of Object.entries(models)) {
    registry.add(inlinePool(resolveModel(definition, name), { abandons: true, observer: instanceMetrics, log }));
  }
  const adapters = options.adapters ?? (await import("./protocols/mod.ts")).PROTOCOLS;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const assembly = assemble({
    ...limits,
    registry,
    adapters,
    interceptors: options.interceptors ?? [],
    instanceMetrics,
    log,
  });
  await registry.loadWarm();
  let app: App | undefined;
  return {
    rpc: (path, messages, { timeoutMs, ...call } = {}) =>
      callInMemory(
        assembly.services,
        path,
        messages,
        { ...call, ...timeoutMs !== undefined && { deadline: Date.now() + timeoutMs } },
        { draining: assembly.draining, maxMessageBytes: limits.maxMessageBytes, log },
      ),
    async fetch(request) {
      const { createApp } = await import("./transports/http/app.ts");
      const { routes, draining } = assembly;
      app ??= createApp(routes, {
        corsOrigins: [],
        isLoopback: false,
        maxMessageBytes: limits.maxMessageBytes,
        draining,
        log,
      });
      return await app(request, request.signal);
    },
    async [Symbol.asyncDispose]() {
      assembly.drain();
      await assembly.close();
    },
  };
}
