/**
 * Calls functions that Tensorlet serves, in all four modes, from Deno or Node: `createClient`.
 *
 * @module
 */
import { Connection } from "./client/connection.ts";
import { batch } from "./client/batch.ts";
import { Conversation } from "./client/chat.ts";
import { ClientError } from "./client/error.ts";
import { predict } from "./client/predict.ts";
import { retryPolicy } from "./client/backoff.ts";
import { Tokens } from "./client/stream.ts";
import type { Target } from "./client/target.ts";
import type { Client, ClientOptions, Prediction, UntypedModel } from "./client/types.ts";
import type { AnyModel, ModelDefinition } from "./core/define.ts";
import { checkIoSpec, checkParamSpecs, type IoSpec, type ParamSpecs } from "./core/spec.ts";

export { ClientError, type ClientErrorOptions } from "./client/error.ts";
export type {
  BaseClientOptions,
  BatchAnswer,
  BatchAnswers,
  BatchOptions,
  BatchStats,
  BatchVector,
  CallOptions,
  Chat,
  ChatOptions,
  Client,
  ClientOptions,
  IsNamed,
  NeedsDefinition,
  ParamsInit,
  PredictInput,
  Prediction,
  PredictOutput,
  RetryOptions,
  StreamInput,
  StreamOptions,
  StreamStats,
  TokenStream,
  TurnOptions,
  UntypedModel,
} from "./client/types.ts";
export type { ErrorCode } from "./core/error.ts";
export type { AnyTensor, Shape, Tensor } from "./core/tensor.ts";
export { tensor } from "./core/tensor.ts";

/**
 * Makes a client of one function of the server at `address` ("host:port"). It connects at the first call.
 *
 * Throws `RangeError` for options that cannot be meant.
 *
 * @example
 * ```ts
 * import { createClient } from "tensorlet/client";
 *
 * await using client = createClient("127.0.0.1:50051", { model: "affine" });
 * console.assert(typeof client.predict === "function");
 * ```
 */
export function createClient<M extends AnyModel = UntypedModel>(
  address: string,
  options: ClientOptions<M>,
): Client<M> {
  const { model, definition, retry, maxMessageBytes = 64 * 1024 * 1024 } = options;
  const closing = new AbortController();
  const connectionOptions = { address, maxMessageBytes };
  const connection = new Connection(connectionOptions);
  const target: Target = {
    connection,
    connectionOptions,
    closing: closing.signal,
    model,
    definition,
    policy: retryPolicy(retry),
  };
  const close = () => {
    closing.abort(new ClientError("cancelled", "The client was closed"));
    connection.close();
  };
  return {
    predict: (input, options = {}) => predict(target, input, options) as Promise<Prediction<M>>,
    stream: (input, options = {}) => new Tokens(target, input, options),
    batch: (vectors, options = {}) => batch(target, vectors, options),
    chat: (options = {}) => new Conversation(target, options),
    close,
    [Symbol.asyncDispose]: () => Promise.resolve(close()),
  };
}

/** What a function takes and gives, as its definition declares it. */
export interface ModelSpecs<
  I extends IoSpec | undefined,
  O extends IoSpec | undefined,
  P extends ParamSpecs | undefined,
> {
  /** Without it tensors go in wire order. */
  readonly input?: I;
  /** Without it the first tensor is the answer. */
  readonly output?: O;
  /** Without them any params are sent. */
  readonly params?: P;
}

/**
 * What a function takes and gives, for `createClient` where its definition is not at hand; `generate` writes it.
 *
 * Throws `TypeError` or `RangeError` where it cannot be meant.
 *
 * @example
 * ```ts
 * import { createClient, declareModel } from "tensorlet/client";
 *
 * const definition = declareModel({ input: { dtype: "float32", shape: [-1, 784] } });
 * await using client = createClient("127.0.0.1:50051", { model: "digits", definition });
 * console.assert(typeof client.predict === "function");
 * ```
 */
export function declareModel<
  const I extends IoSpec | undefined = undefined,
  const O extends IoSpec | undefined = undefined,
  const P extends ParamSpecs | undefined = undefined,
>(specs: ModelSpecs<I, O, P>): ModelDefinition<I, O, P, undefined, undefined> {
  const { input, output, params } = specs;
  if (input) checkIoSpec(input, "input");
  if (output) checkIoSpec(output, "output");
  if (params) checkParamSpecs(params);
  return Object.freeze({ "~model": Object.freeze({ ...specs }) });
}
