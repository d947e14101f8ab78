// One connection and the calls on it. Every mode is a stream each way; unary ones have one message there.
import {
  type ChannelOptions,
  Client,
  type ClientDuplexStream,
  connectivityState,
  credentials,
  Metadata,
  type ServiceError,
} from "@grpc/grpc-js";
import { context, propagation } from "@opentelemetry/api";
import { patchHttp2Close } from "../transports/grpc/http2_patch.ts";
import { type Bounds, isAborted, onAbort, reasonOf } from "./bounds.ts";
import { ClientError, statusError } from "./error.ts";
import type { Method } from "./messages.ts";
import { createMeteredCredentials, type OnDataSent } from "./metered_credentials.ts";

/** The options of {@linkcode Connection}. */
export interface ConnectionOptions {
  /** "host:port" */
  readonly address: string;
  readonly maxMessageBytes: number;
  /** Told of every DATA frame that leaves; on Deno only, where nothing else says so. */
  readonly onDataSent?: OnDataSent;
}

/** What a call takes besides its messages. */
export interface RpcOptions extends Bounds {
  readonly metadata: Readonly<Record<string, string>>;
}

// Beyond that a deadline overflows into the past, at both ends.
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** A connection to one server, made at the first call. */
export class Connection {
  readonly #client: Client;
  #isClosed = false;

  constructor({ address, maxMessageBytes, onDataSent }: ConnectionOptions) {
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
    this.#client = new Client(
      address,
      onDataSent ? createMeteredCredentials(onDataSent) : credentials.createInsecure(),
      options,
    );
  }

  /** Resolves when it is made; rejects with `unavailable` where that fails. */
  async ready({ requestId, deadline = Infinity, signals }: Bounds): Promise<void> {
    if (isAborted(signals)) throw reasonOf(signals, requestId);
    const channel = this.#client.getChannel();
    const until = deadline - Date.now() <= MAX_TIMEOUT_MS ? deadline : Infinity;
    await new Promise<void>((resolve, reject) => {
      // A connection without a call does not keep a Node process.
      const hold = setInterval(() => {}, MAX_TIMEOUT_MS);
      const settle = (action: () => void) => {
        clearInterval(hold);
        forget();
        action();
      };
      const fail = (error: ClientError) => settle(() => reject(error));
      const forget = onAbort(signals, () => fail(reasonOf(signals, requestId)));
      const look = (timeout?: Error) => {
        if (isAborted(signals)) return;
        const state = this.#isClosed ? connectivityState.SHUTDOWN : channel.getConnectivityState(true);
        if (state === connectivityState.READY) {
          settle(resolve);
        } else if (timeout) {
          fail(new ClientError("deadline_exceeded", "The deadline passed before a connection was made", { requestId }));
        } else if (state === connectivityState.TRANSIENT_FAILURE || state === connectivityState.SHUTDOWN) {
          fail(new ClientError("unavailable", `Cannot connect to ${channel.getTarget()}`, { requestId }));
        } else {
          channel.watchConnectivityState(state, until, look);
        }
      };
      look();
    });
  }

  /** Starts a call. */
  open<Request, Response>(method: Method<Request, Response>, options: RpcOptions): Rpc<Request, Response> {
    const { requestId, deadline, signals } = options;
    if (this.#isClosed) {
      throw new ClientError("failed_precondition", "Cannot call: the client is closed", { requestId });
    }
    if (isAborted(signals)) throw reasonOf(signals, requestId);
    const metadata = new Metadata();
    // The active span's, where the program traces itself.
    propagation.inject(context.active(), metadata, { set: (carrier, key, value) => carrier.set(key, value) });
    for (const [key, value] of Object.entries(options.metadata)) metadata.set(key, value);
    const hasDeadline = deadline !== undefined && deadline - Date.now() <= MAX_TIMEOUT_MS;
    const stream = this.#client.makeBidiStreamRequest(
      method.path,
      method.serialize as (request: Request) => never,
      method.deserialize,
      metadata,
      hasDeadline ? { deadline } : {},
    );
    return new Rpc(stream, requestId, signals);
  }

  /** A call with one message each way. */
  async unary<Request, Response>(
    method: Method<Request, Response>,
    request: Request,
    options: RpcOptions,
  ): Promise<Response> {
    const rpc = this.open(method, options);
    rpc.write(request);
    rpc.end();
    let response: Response | undefined;
    for await (const message of rpc) response = message;
    if (response !== undefined) return response;
    throw new ClientError("internal", "The server gave no answer", { requestId: options.requestId });
  }

  close(): void {
    this.#isClosed = true;
    this.#client.close();
  }
}

/** One call: messages in, messages out. Read it to its end or cancel it. */
export class Rpc<Request, Response> implements AsyncIterable<Response, void, undefined> {
  readonly #stream: ClientDuplexStream<Request, Response>;
  readonly #requestId: string;
  readonly #signals: readonly AbortSignal[];
  #trailers: Metadata | undefined;

  constructor(stream: ClientDuplexStream<Request, Response>, requestId: string, signals: readonly AbortSignal[]) {
    this.#stream = stream;
    this.#requestId = requestId;
    this.#signals = signals;
    const forget = onAbort(signals, () => this.cancel());
    stream.on("error", () => {}); // a status that comes when nobody reads any more
    stream.on("status", ({ metadata }) => {
      this.#trailers = metadata;
      forget();
    });
  }

  /** Whether its status is known. */
  get hasEnded(): boolean {
    return this.#trailers !== undefined;
  }

  /** Sends a message; `onWritten` is called when it has left, but on Deno earlier than that. */
  write(request: Request, onWritten?: () => void): void {
    if (!this.hasEnded) this.#stream.write(request, onWritten && (() => onWritten()));
  }

  /** Ends this side. */
  end(): void {
    this.#stream.end();
  }

  /** Calls `action` when its status is known. */
  onEnd(action: () => void): void {
    if (this.hasEnded) action();
    else this.#stream.once("status", action);
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
      throw isAborted(this.#signals)
        ? reasonOf(this.#signals, this.#requestId)
        : statusError(error as ServiceError, this.#requestId);
    } finally {
      if (!this.hasEnded) this.cancel();
    }
  }
}
