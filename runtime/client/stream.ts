// Token streams that survive a broken connection.
import type { Bounds } from "./connection.ts";
import { ClientError } from "./error.ts";
import { STREAM_PREDICT } from "./messages.ts";
import { boundsOf, type Options, paramTexts, type Target } from "./target.ts";
import { flatValues } from "./tensors.ts";
import type { StreamInput, StreamStats, TokenStream } from "./types.ts";

/** The options of a stream with the types of its params erased. */
export interface StreamRequest extends Options {
  readonly maxTokens?: number | undefined;
  readonly resume?: boolean | undefined;
}

/** Starts when it is read. */
export class Tokens implements TokenStream {
  readonly #target: Target;
  readonly #input: StreamInput;
  readonly #options: StreamRequest;
  readonly #bounds: Bounds;
  #isRead = false;
  /** The index of the next chunk. */
  #next = 0;
  #stats: StreamStats = { tokens: 0, resumptions: 0, latencyMs: undefined, timeToFirstTokenMs: undefined };

  constructor(target: Target, input: StreamInput, options: StreamRequest) {
    this.#target = target;
    this.#input = input;
    this.#options = options;
    this.#bounds = boundsOf(options);
  }

  get requestId(): string {
    return this.#bounds.requestId;
  }

  get stats(): StreamStats {
    return this.#stats;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string, void, undefined> {
    if (this.#isRead) throw this.#error("failed_precondition", "Cannot read a stream of tokens twice");
    this.#isRead = true;
    yield* this.#read({});
  }

  /** The tokens of one connection. */
  async *#read(extra: Readonly<Record<string, string>>): AsyncGenerator<string, void, undefined> {
    const { connection, model } = this.#target;
    const { values, shape } = flatValues(this.#input);
    const resume = this.#options.resume ?? true;
    const rpc = connection.open(STREAM_PREDICT, {
      ...this.#bounds,
      metadata: { ...this.#options.metadata, ...resume && { "request-id": this.requestId } },
    });
    rpc.end({
      model_id: model,
      input_tensor: values,
      params: { ...paramTexts(this.#options.params), ...shape && { shape: shape.join(",") }, ...extra },
      max_tokens: this.#options.maxTokens ?? 0,
    });
    for await (const { index, token, is_final } of rpc) {
      if (index !== this.#next) {
        throw this.#error("data_loss", `Cannot go on: the server sent token ${index}, wanted token ${this.#next}`);
      }
      this.#next++;
      if (token === "" && is_final) continue; // says only that it was the last
      this.#stats = { ...this.#stats, tokens: this.#stats.tokens + 1 };
      yield token;
    }
    this.#stats = {
      ...this.#stats,
      latencyMs: rpc.trailer("latency-ms"),
      timeToFirstTokenMs: rpc.trailer("time-to-first-token-ms"),
    };
  }

  #error(code: "data_loss" | "failed_precondition", message: string, cause?: unknown): ClientError {
    return new ClientError(code, message, { requestId: this.requestId, ...cause !== undefined && { cause } });
  }
}
