// Token streams that survive a broken connection: the server keeps what it has sent, and every token has an index.
import type { Bounds } from "./bounds.ts";
import { ClientError, isConnectionLost } from "./error.ts";
import { type PredictRequest, STREAM_PREDICT } from "./messages.ts";
import { Attempts, isRetryable } from "./retry.ts";
import { boundsOf, type Options, paramTexts, type Target } from "./target.ts";
import { flatValues } from "./tensors.ts";
import type { StreamInput, StreamStats, TokenStream } from "./types.ts";

/** The options of a stream with the types of its params erased. */
export interface StreamRequest extends Options {
  readonly maxTokens?: number | undefined;
  readonly resume?: boolean | undefined;
}

/** One stream; it starts when it is read. */
export class Tokens implements TokenStream {
  readonly #target: Target;
  readonly #request: PredictRequest;
  readonly #metadata: Readonly<Record<string, string>>;
  readonly #mayResume: boolean;
  readonly #bounds: Bounds;
  #isRead = false;
  /** The index of the next chunk. */
  #next = 0;
  #hasLast = false;
  /** Whether the server has a call of our id, from which the next connection reads on. */
  #isKept = false;
  #stats: StreamStats = { tokens: 0, resumptions: 0, latencyMs: undefined, timeToFirstTokenMs: undefined };

  constructor(target: Target, input: StreamInput, options: StreamRequest) {
    const { maxTokens = 0, resume = true, metadata } = options;
    const { values, shape } = flatValues(input);
    this.#target = target;
    this.#bounds = boundsOf(target, options);
    this.#mayResume = resume;
    this.#metadata = { ...metadata, ...resume && { "request-id": this.requestId } };
    this.#request = {
      model_id: target.model,
      input_tensor: values,
      params: { ...paramTexts(options.params), ...shape && { shape: shape.join(",") } },
      max_tokens: maxTokens,
    };
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
    const attempts = new Attempts(this.#target.policy, this.#bounds);
    let wasLost = false;
    while (!this.#hasLast) {
      const first = this.#next;
      try {
        yield* this.#readOn();
      } catch (error) {
        if (!(error instanceof ClientError)) throw error;
        if (this.#hasLast && isConnectionLost(error)) return; // only the status is missing
        if (this.#next > first) {
          attempts.reset();
          this.#isKept = this.#mayResume;
        }
        if (this.#isUnknown(error)) {
          // Nothing was given out: the call may as well begin anew.
          if (this.#next > 0) throw this.#dataLoss(error);
          this.#isKept = false;
        } else if (wasLost && this.#mayResume && !this.#isKept && error.code === "already_exists") {
          this.#isKept = true; // what was lost on the way had arrived
          continue;
        } else if (!isRetryable(error) || (this.#next > 0 && !this.#isKept)) {
          throw error;
        }
        wasLost = true;
        await attempts.wait(error);
      }
    }
  }

  /** The tokens of one connection. */
  async *#readOn(): AsyncGenerator<string, void, undefined> {
    const { connection } = this.#target;
    const rpc = connection.open(STREAM_PREDICT, { ...this.#bounds, metadata: this.#metadata });
    const from: PredictRequest["params"] = this.#isKept ? { resume_from: `${this.#next}` } : {};
    rpc.write({ ...this.#request, params: { ...this.#request.params, ...from } });
    rpc.end();
    if (this.#isKept) this.#stats = { ...this.#stats, resumptions: this.#stats.resumptions + 1 };
    for await (const { index, token, is_final } of rpc) {
      if (index !== this.#next) {
        throw this.#error("data_loss", `Cannot read on: the server sent token ${index}, wanted token ${this.#next}`);
      }
      this.#next++;
      this.#hasLast = is_final;
      if (token === "" && is_final) continue; // says only that there is no more
      this.#stats = { ...this.#stats, tokens: this.#stats.tokens + 1 };
      yield token;
    }
    if (!this.#hasLast) throw this.#error("data_loss", "The server ended the stream without a last token");
    this.#stats = {
      ...this.#stats,
      latencyMs: rpc.trailer("latency-ms"),
      timeToFirstTokenMs: rpc.trailer("time-to-first-token-ms"),
    };
  }

  /** Whether the server has nothing to read on from. */
  #isUnknown({ code }: ClientError): boolean {
    return this.#isKept && ["not_found", "out_of_range", "unimplemented"].includes(code);
  }

  #dataLoss(cause: ClientError): ClientError {
    const message = `Cannot resume the stream from token ${this.#next} after a broken connection: ${cause.message}`;
    return this.#error("data_loss", message, cause);
  }

  #error(code: "data_loss" | "failed_precondition", message: string, cause?: ClientError): ClientError {
    return new ClientError(code, message, { requestId: this.requestId, ...cause && { cause } });
  }
}
