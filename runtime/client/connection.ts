// One connection and the calls on it. Every mode is a stream each way; unary ones have one message there.
import { type ChannelOptions, Client, type ClientDuplexStream, credentials, Metadata } from "@grpc/grpc-js";
import type { ServiceError } from "@grpc/grpc-js";
import { patchHttp2Close } from "../transports/grpc/http2_patch.ts";
import { abortError, ClientError, statusError } from "./error.ts";
import type { Method } from "./messages.ts";

/** What bounds an operation, all of its attempts together. */
export interface Bounds {
  readonly requestId: string;
  /** Epoch milliseconds. */
  readonly deadline: number | undefined;
  readonly signal: AbortSignal | undefined;
}

/** What a call takes besides its messages. */
export interface RpcOptions extends Bounds {
  readonly metadata: Readonly<Record<string, string>>;
}

// Beyond that a deadline overflows into the past, at both ends.
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** A lazily made connection to one server. */
export class Connection {
  readonly #client: Client;

  constructor(address: string, maxMessageBytes: number) {
    patchHttp2Close();
    const options: ChannelOptions = {
      "grpc.max_receive_message_length": maxMessageBytes,
      "grpc.max_send_message_length": maxMessageBytes,
      // What may be tried again is decided here, not below.
      "grpc.enable_retries": 0,
      // Its own connection, which close() closes.
      "grpc.use_local_subchannel_pool": 1,
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 5_000,
      // Finds a connection whose other end is gone without a word.
      "grpc.keepalive_time_ms": 20_000,
      "grpc.keepalive_timeout_ms": 10_000,
    };
    this.#client = new Client(address, credentials.createInsecure(), options);
  }

  /** Starts a call. */
  open<Request, Response>(method: Method<Request, Response>, options: RpcOptions): Rpc<Request, Response> {
    const { requestId, deadline, signal } = options;
    const metadata = new Metadata();
    for (const [key, value] of Object.entries(options.metadata)) metadata.set(key, value);
    const hasDeadline = deadline !== undefined && deadline - Date.now() <= MAX_TIMEOUT_MS;
    const stream = this.#client.makeBidiStreamRequest(
      method.path,
      method.serialize as (request: Request) => never,
      method.deserialize,
      metadata,
      hasDeadline ? { deadline } : {},
    );
    return new Rpc(stream, requestId, signal);
  }

  /** A call with one message each way. */
  async unary<Request, Response>(
    method: Method<Request, Response>,
    request: Request,
    options: RpcOptions,
  ): Promise<Response> {
    const rpc = this.open(method, options);
    rpc.end(request);
    let response: Response | undefined;
    for await (const message of rpc) response = message;
    if (response !== undefined) return response;
    throw new ClientError("internal", "The server gave no answer", { requestId: options.requestId });
  }

  close(): void {
    this.#client.close();
  }
}

/** One call: messages in, messages out. Read it to its end or cancel it. */
export class Rpc<Request, Response> implements AsyncIterable<Response, void, undefined> {
  readonly #stream: ClientDuplexStream<Request, Response>;
  readonly #requestId: string;
  readonly #signal: AbortSignal | undefined;
  #trailers: Metadata | undefined;

  constructor(stream: ClientDuplexStream<Request, Response>, requestId: string, signal: AbortSignal | undefined) {
    this.#stream = stream;
    this.#requestId = requestId;
    this.#signal = signal;
    const cancel = () => this.cancel();
    stream.on("error", () => {}); // a status that comes when nobody reads any more
    stream.on("status", ({ metadata }) => {
      this.#trailers = metadata;
      signal?.removeEventListener("abort", cancel);
    });
    if (signal?.aborted) cancel();
    else signal?.addEventListener("abort", cancel, { once: true });
  }

  /** Sends a message; false where the next should wait for {@linkcode drained}. */
  write(request: Request): boolean {
    return this.#stream.write(request);
  }

  /** Ends this side, after a last message where one is given. */
  end(request?: Request): void {
    if (request !== undefined) this.#stream.write(request);
    this.#stream.end();
  }

  /** Resolves when messages may be sent again, or the call has ended. */
  drained(): Promise<void> {
    return new Promise((resolve) => {
      const events = ["drain", "status"] as const;
      const done = () => {
        for (const event of events) this.#stream.off(event, done);
        resolve();
      };
      for (const event of events) this.#stream.on(event, done);
      if (this.hasEnded || !this.#stream.writableNeedDrain) done();
    });
  }

  get hasEnded(): boolean {
    return this.#trailers !== undefined;
  }

  /** A number of the trailers, where there is one. */
  trailer(name: string): number | undefined {
    const [value] = this.#trailers?.get(name) ?? [];
    return typeof value === "string" ? Number(value) : undefined;
  }

  cancel(): void {
    this.#stream.cancel();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Response, void, undefined> {
    try {
      yield* this.#stream.iterator({ destroyOnReturn: false });
    } catch (error) {
      throw this.#signal?.aborted
        ? abortError(this.#signal.reason, this.#requestId)
        : statusError(error as ServiceError, this.#requestId);
    } finally {
      if (!this.hasEnded) this.cancel();
    }
  }
}
