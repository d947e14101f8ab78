// What callers write and get, typed by the function's definition where there is one.
import type { AnyModel, InferInput, InferOutput, ModelDefinition } from "../core/define.ts";
import type { IoSpec, ParamSpecs, ParamType, ParamValue, TensorSpec, TensorSpecs } from "../core/spec.ts";
import type { AnyTensor, Tensor } from "../core/tensor.ts";

/** A function of which the compiler knows nothing: tensors in wire order, any params. */
export type UntypedModel = ModelDefinition<undefined, undefined, undefined, undefined, undefined>;

/** How often and how fast a client tries again. */
export interface RetryOptions {
  /** Attempts after the first, in a row: a stream that goes on begins to count anew. 0 = none. @default {3} */
  readonly retries?: number;
  /** The first wait, in milliseconds; each one is up to twice as long as the one before. @default {200} */
  readonly initialDelayMs?: number;
  /** The longest wait, in milliseconds; a server that asks for a longer one gets it. @default {5000} */
  readonly maxDelayMs?: number;
}

/** Whether a spec declares several tensors by name. */
export type IsNamed<S> = S extends TensorSpec ? false : S extends TensorSpecs ? true : false;
/** Includes `true` where the function declares several tensors: on the wire they have no names, only an order. */
export type NeedsDefinition<M extends AnyModel> = M extends
  ModelDefinition<infer I, infer O, infer _P, infer _M, infer _S> ? IsNamed<I> | IsNamed<O>
  : never;

/** The options of `createClient`. */
export interface BaseClientOptions {
  /** The function, as `name` or `name@version`. Empty = the server's only one. */
  readonly model: string;
  /** Applies to every call. */
  readonly retry?: RetryOptions;
  /** The largest message either way, in bytes. @default {67_108_864} */
  readonly maxMessageBytes?: number;
}

/** The options of `createClient`: a function that declares several tensors by name needs its definition. */
export type ClientOptions<M extends AnyModel = UntypedModel> =
  & BaseClientOptions
  & (true extends NeedsDefinition<M> ? {
      /** The function's definition; importing its file loads nothing else. It tells the order of tensors by name. */
      readonly definition: M;
    }
    : {
      /** The function's definition: with it a bare array gets the declared dtype and shape. */
      readonly definition?: M;
    });

/** Parameters of a call; those with a default may be left out, and so may all others. */
export type ParamsInit<M extends AnyModel> = M extends ModelDefinition<infer _I, infer _O, infer P, infer _M, infer _S>
  ? P extends ParamSpecs ? { readonly [K in keyof P]?: ParamType<P[K]> } : Readonly<Record<string, ParamValue>>
  : never;

/** What every call takes. */
export interface CallOptions<M extends AnyModel = UntypedModel> {
  /** Sent as text. Where they go as metadata (all but `stream`) they have to be ASCII. */
  readonly params?: ParamsInit<M>;
  /** The call's deadline, retries included; milliseconds from now. @default none */
  readonly timeoutMs?: number;
  /** Aborts the call. */
  readonly signal?: AbortSignal;
  /** Further metadata, as text by lower-case key. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Names the call in logs and errors: 1 to 128 printable ASCII characters. @default an unguessable one */
  readonly requestId?: string;
}

/** What `predict` takes: without a declared input tensors in wire order. */
export type PredictInput<M extends AnyModel> = M extends
  ModelDefinition<infer I, infer _O, infer _P, infer _M, infer _S>
  ? I extends IoSpec ? InferInput<M> : AnyTensor | readonly AnyTensor[]
  : never;

/** What `predict` gives: without a declared output the first tensor. */
export type PredictOutput<M extends AnyModel> = M extends
  ModelDefinition<infer _I, infer O, infer _P, infer _M, infer _S> ? O extends IoSpec ? InferOutput<M> : AnyTensor
  : never;

/** An answer to `predict`. */
export interface Prediction<M extends AnyModel = UntypedModel> {
  /** One tensor, or several by name; the first where the function declares none. */
  readonly output: PredictOutput<M>;
  /** All of them in wire order. */
  readonly outputs: readonly AnyTensor[];
  /** The time that the server took, in whole milliseconds. */
  readonly latencyMs: number;
  /** Names the call in the server's log. */
  readonly requestId: string;
}

/** Values for `stream`: one float32 tensor. An empty list is none. */
export type StreamInput = Tensor<"float32"> | Float32Array | readonly number[];

/** The options of `stream`. */
export interface StreamOptions<M extends AnyModel = UntypedModel> extends CallOptions<M> {
  /** The most tokens. @default the function's own */
  readonly maxTokens?: number;
  /**
   * Goes on where it was after a broken connection. The server then keeps the function running for a while (10 s by
   * default) when the reader leaves; `false` has it aborted at once. @default {true}
   */
  readonly resume?: boolean;
}

/** What is known of a stream; complete at its end. */
export interface StreamStats {
  /** Tokens that were given out. */
  readonly tokens: number;
  /** How often the stream was taken up again after a broken connection. */
  readonly resumptions: number;
  /** What the server says of the last connection: from the request to the end, in milliseconds. */
  readonly latencyMs: number | undefined;
  /** What the server says of the last connection: from the request to the first token, in milliseconds. */
  readonly timeToFirstTokenMs: number | undefined;
}

/** Tokens as they come; to be read once. */
export interface TokenStream extends AsyncIterable<string, void, undefined> {
  /** Names the call in the server's log, and to whoever resumes it. */
  readonly requestId: string;
  /** What is known by now. */
  readonly stats: StreamStats;
}

/** One vector of a batch; `id` names it in errors. */
export type BatchVector = readonly number[] | Float32Array | {
  /** Names it in errors and comes back with its result. */
  readonly id?: string;
  /** Its values. */
  readonly features: readonly number[] | Float32Array;
};

/** The options of `batch`. */
export interface BatchOptions<M extends AnyModel = UntypedModel> extends CallOptions<M> {
  /** Told of the progress: at most every 100 ms, and at the end. */
  readonly onProgress?: (stats: BatchStats) => void;
  /**
   * Sends all vectors again after a broken connection: `vectors` has to be an iterable that can be read twice, like
   * an array, and the function may see a vector twice. @default {false}
   */
  readonly retry?: boolean;
}

/** What the sender of a batch did. */
export interface BatchStats {
  /** Vectors that were handed to the connection. */
  readonly sent: number;
  /** Their bytes, encoded. */
  readonly bytes: number;
  /** Vectors that wait for the server's flow control now. */
  readonly inFlight: number;
  /** The most vectors that may be in flight now. */
  readonly window: number;
  /** How often the window grew. */
  readonly increases: number;
  /** How often it shrank, because the server fell behind. */
  readonly decreases: number;
  /** Milliseconds from the first vector to the last. */
  readonly sendMs: number;
  /** Milliseconds of them in which the sender waited for the server. */
  readonly waitedMs: number;
}

/** The answer to one vector of a batch. */
export interface BatchAnswer {
  /** As it was sent. */
  readonly id: string | undefined;
  /** The function's output as float32. */
  readonly output: Float32Array;
  /** The time that the server took for the vector's chunk, in milliseconds. */
  readonly latencyMs: number;
}

/** The answer to a batch. */
export interface BatchAnswers {
  /** One for each vector, in their order. */
  readonly results: readonly BatchAnswer[];
  /** The version of the function that answered; empty where there were no vectors. */
  readonly version: string;
  /** What the sender did. */
  readonly stats: BatchStats;
  /** Names the call in the server's log. */
  readonly requestId: string;
}

/** The options of `chat`. */
export interface ChatOptions<M extends AnyModel = UntypedModel> extends Omit<CallOptions<M>, "timeoutMs"> {
  /** Goes on with this session where the server still has it. @default an unguessable one */
  readonly sessionId?: string;
  /** Milliseconds between two heartbeats while nothing is said; they keep the session. 0 = none. @default {20_000} */
  readonly heartbeatMs?: number;
}

/** The options of one turn. */
export interface TurnOptions {
  /** Of the whole turn; milliseconds from now. @default none */
  readonly timeoutMs?: number;
  /** Aborts the turn; the session goes on. */
  readonly signal?: AbortSignal;
}

/** A conversation. Disposing it closes it; the server keeps the session for its idle time. */
export interface Chat extends AsyncDisposable {
  /** What brings this conversation back, on another client too. */
  readonly sessionId: string;
  /** Whether its stream is open now. A closed one is made anew for the next message or heartbeat. */
  readonly isConnected: boolean;
  /** Says something; gives the pieces of the answer as they come. The message leaves when the first is asked for. */
  send(content: string, options?: TurnOptions): AsyncIterable<string, void, undefined>;
  /** Ends the stream, after the running turn. */
  close(): Promise<void>;
}

/** Calls of one function of one server. Disposing it closes its connection. */
export interface Client<M extends AnyModel = UntypedModel> extends AsyncDisposable {
  /** Tensors in, tensors out, with their exact dtypes. Tried again where the server could not be reached. */
  predict(input: PredictInput<M>, options?: CallOptions<M>): Promise<Prediction<M>>;
  /** Tokens as the function makes them; goes on after a broken connection. Leaving the loop ends the call. */
  stream(input: StreamInput, options?: StreamOptions<M>): TokenStream;
  /** Any number of vectors in one call, at the pace that the server takes them. */
  batch(
    vectors: Iterable<BatchVector> | AsyncIterable<BatchVector>,
    options?: BatchOptions<M>,
  ): Promise<BatchAnswers>;
  /** A conversation, kept alive by heartbeats. */
  chat(options?: ChatOptions<M>): Chat;
  /** Closes the connection; calls in progress fail. */
  close(): void;
}
