// One call's life: request messages pulled one by one, responses written no faster than the client takes them, and
// exactly one status. Works on grpc-js's own base call (the interceptor API): no stream objects in between.
import { Metadata, type ServerInterceptingCallInterface, status } from "@grpc/grpc-js";
import { Buffer } from "node:buffer";
import { nextTick } from "node:process";
import { freeBytes } from "../../core/bytes.ts";
import { ModelError, toModelError } from "../../core/error.ts";
import type { Logger } from "../../core/log.ts";
import { atDeadline, cancelledByClient, deadlineExceeded } from "../../core/signal.ts";
import type { RpcMethod } from "../../protocols/adapter.ts";
import { requestIdOf, runMethod, type TransportContext } from "../run_method.ts";
import type { Connection, Peer } from "./connection.ts";
import type { StreamFlow } from "./flow.ts";
import { toHeaders, toMetadata } from "./metadata.ts";
import { statusOf } from "./status.ts";

/** What calls share. */
export interface CallEnvironment {
  readonly maxMessageBytes: number;
  /** How long the one message of a call may take to come, in milliseconds. */
  readonly requestTimeoutMs: number;
  readonly log: Logger;
  /** Aborts when the shutdown begins. */
  readonly draining: AbortSignal;
  /** Calls in progress, for the shutdown. */
  readonly open: Set<GrpcCall>;
  /** The connection of a peer. */
  readonly connectionOf: (peer: Peer) => Connection | undefined;
}

/** Bytes of a stream that may wait for the client's flow control window; beyond it the handler waits. */
const MAX_UNSENT_BYTES = 65_536;
/** Messages of a stream that may: each costs Deno's http2 a kilobyte, however small it is. */
const MAX_UNSENT_MESSAGES = 256;
/** Bytes that may still wait when the status is given out. */
const MAX_UNSENT_AT_END_BYTES = 4096;
/** What a client gets to take the bytes before an error's status, in milliseconds. */
const LAST_BYTES_MS = 1000;
/** A message that HTTP/2's own windows stop on its way. */
const LARGE_MESSAGE_BYTES = 65_536;
/** What gRPC puts before each message. */
const MESSAGE_HEADER_BYTES = 5;

interface EndStatus {
  readonly code: number;
  readonly details: string;
  readonly metadata: Metadata;
}

/** A call in progress. */
export class GrpcCall {
  readonly #call: ServerInterceptingCallInterface;
  readonly #sendStatus: (status: EndStatus) => void;
  readonly #path: string;
  readonly #method: RpcMethod;
  readonly #environment: CallEnvironment;
  readonly #controller = new AbortController();
  readonly #requests: RequestReader;
  readonly #finish = Promise.withResolvers<void>();
  #ended = false;
  #left = false;
  readonly #streamId: number;
  #disarm: (() => void) | undefined;
  #disarmRequest: (() => void) | undefined;
  readonly #connection: Connection | undefined;
  readonly #flow: StreamFlow | undefined;
  #messages = 0;
  #handedOver = 0;
  #isCorked = false;

  /** `sendStatus` is the call's own; what grpc-js sends by itself goes another way (server.ts). `path`: "/Service/Method". */
  constructor(
    call: ServerInterceptingCallInterface,
    sendStatus: (status: EndStatus) => void,
    path: string,
    method: RpcMethod,
    environment: CallEnvironment,
  ) {
    this.#call = call;
    this.#sendStatus = sendStatus;
    this.#path = path;
    this.#method = method;
    this.#environment = environment;
    this.#requests = new RequestReader(call, method, this.#controller.signal);
    this.#streamId = streamIdOf(call);
    this.#connection = environment.connectionOf(call.getConnectionInfo());
    this.#flow = this.#connection?.meter.track(this.#streamId);
    if (this.#flow) this.#flow.onClosed = () => this.#onGone();
  }

  /** Resolves when the call's last byte has left, or its client. */
  get finished(): Promise<void> {
    return this.#finish.promise;
  }

  /** Takes the call over. */
  start(): void {
    this.#call.start({
      onReceiveMetadata: (metadata) => {
        this.#environment.open.add(this);
        // What fails in answering must be answered too: an adapter's trailer that is none, say.
        this.#run(metadata).catch((cause) => {
          this.#environment.log.error("Cannot answer a call", { method: this.#method.name, cause });
          this.#end({ code: status.INTERNAL, details: "The server failed", metadata: new Metadata() });
        });
      },
      onReceiveMessage: (bytes) => {
        if (bytes.length >= LARGE_MESSAGE_BYTES) this.#connection?.widen();
        this.#requests.receive(bytes);
      },
      onReceiveHalfClose: () => {
        this.#disarmRequest?.();
        this.#requests.end();
      },
      onCancel: () => this.#onCancel(),
    });
  }

  /** Ends the call with `reason`, unless it has ended. */
  abort(reason: ModelError): void {
    if (this.#ended) return;
    this.#controller.abort(reason);
    this.#flow?.onSent?.();
  }

  async #run(received: Metadata): Promise<void> {
    const metadata = toHeaders(received);
    const deadline = this.#deadline();
    if (!this.#method.clientStreaming) {
      const latest = Date.now() + this.#environment.requestTimeoutMs;
      this.#disarmRequest = atDeadline(latest, () => this.abort(deadlineExceeded()));
    }
    if (deadline !== undefined) this.#disarm = atDeadline(deadline, () => this.abort(deadlineExceeded()));
    const id = requestIdOf(metadata);
    const responseMetadata = new Headers();
    responseMetadata.set("request-id", id);
    const trailers = new Headers();
    const context: TransportContext = {
      id,
      signal: this.#controller.signal,
      draining: this.#environment.draining,
      deadline,
      metadata,
      responseMetadata,
      trailers,
      maxMessageBytes: this.#environment.maxMessageBytes,
      origin: { transport: "grpc", method: this.#path.slice(1), peer: peerOf(this.#call.getConnectionInfo()) },
      log: this.#environment.log,
    };
    try {
      this.#environment.draining.throwIfAborted();
      for await (const bytes of runMethod(this.#method, this.#requests, context)) {
        this.#controller.signal.throwIfAborted();
        if (this.#messages === 0) this.#call.sendMetadata(toMetadata(responseMetadata));
        await this.#send(bytes);
      }
      await this.#untilUnsent(MAX_UNSENT_AT_END_BYTES);
      this.#controller.signal.throwIfAborted();
      this.#end({ code: status.OK, details: "OK", metadata: toMetadata(trailers) });
    } catch (thrown) {
      const error = toModelError(this.#controller.signal.aborted ? this.#controller.signal.reason : thrown, id);
      if (this.#messages === 0) trailers.set("request-id", id);
      this.#end(statusOf(error, toMetadata(trailers)));
    }
  }

  #end(end: EndStatus): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#disarm?.();
    this.#disarmRequest?.();
    this.#requests.stop();
    if (this.#left) return;
    const flow = this.#flow;
    if (!flow || this.#unsent <= MAX_UNSENT_AT_END_BYTES) return this.#sendEnd(end);
    // The status waits behind what the client does not take. If it goes on taking nothing the stream is torn down: Deno
    // never frees the bytes of one that is ended, or closed, with some left.
    const timer = setTimeout(() => {
      this.#destroy();
      this.#leave();
    }, LAST_BYTES_MS);
    this.#disarm = () => clearTimeout(timer);
    flow.onSent = () => {
      if (this.#unsent > MAX_UNSENT_AT_END_BYTES) return;
      clearTimeout(timer);
      this.#sendEnd(end);
    };
  }

  #sendEnd(end: EndStatus): void {
    this.#sendStatus(end);
    const flow = this.#flow;
    if (!flow || this.#unsent === 0) return this.#leave();
    flow.onSent = () => {
      if (this.#unsent === 0) this.#leave();
    };
  }

  /** Bytes that the client's window has not let out yet. */
  get #unsent(): number {
    return this.#flow ? this.#handedOver - this.#flow.sent : 0;
  }

  // The client has reset the stream, or its connection is gone: nobody wants what waits.
  #onGone(): void {
    if (this.#unsent > 0) this.#destroy();
    this.#onCancel();
  }

  #destroy(): void {
    (this.#call as unknown as BaseCall).stream?.destroy?.();
  }

  // Also called after every call that ended normally.
  #onCancel(): void {
    if (!this.#ended) this.abort(this.#isPastDeadline() ? deadlineExceeded() : cancelledByClient());
    this.#leave();
  }

  // Only now is the call over: its last bytes may have waited for the client's window.
  #leave(): void {
    this.#left = true;
    this.#disarm?.();
    this.#environment.open.delete(this);
    this.#connection?.meter.untrack(this.#streamId);
    this.#finish.resolve();
  }

  /** Resolves when the handler may go on. */
  #send(bytes: Uint8Array): Promise<void> | void {
    const isFirst = this.#messages++ === 0;
    const length = bytes.length + MESSAGE_HEADER_BYTES;
    this.#handedOver += length;
    if (!isFirst) this.#cork();
    this.#call.sendMessage(toBuffer(bytes), () => {});
    freeBytes(bytes); // grpc-js has copied it
    // The first token is on its way before the handler works on the second, even where that blocks the event loop.
    if (isFirst && this.#method.serverStreaming) return this.#untilUnsent(0);
    return this.#untilUnsent(Math.min(MAX_UNSENT_BYTES, MAX_UNSENT_MESSAGES * length));
  }

  /** Resolves when at most `room` bytes have not left, or the call is aborted. */
  #untilUnsent(room: number): Promise<void> | void {
    const flow = this.#flow;
    if (!flow || this.#unsent <= room) return;
    return new Promise((resolve) => {
      flow.onSent = () => {
        if (this.#unsent > room && !this.#controller.signal.aborted) return;
        flow.onSent = undefined;
        resolve();
      };
    });
  }

  // The messages of one turn leave as one write, and one frame: a frame of its own for each token costs as much as the
  // token's way through the rest of the server.
  #cork(): void {
    const { stream } = this.#call as unknown as BaseCall;
    if (this.#isCorked || !stream?.cork) return;
    this.#isCorked = true;
    stream.cork();
    nextTick(() => {
      this.#isCorked = false;
      stream.uncork?.();
    });
  }

  #deadline(): number | undefined {
    const deadline = this.#call.getDeadline();
    const at = deadline instanceof Date ? deadline.getTime() : deadline;
    return Number.isFinite(at) ? at : undefined;
  }

  #isPastDeadline(): boolean {
    return Date.now() >= (this.#deadline() ?? Infinity);
  }
}

/**
 * The request messages of one call: asks the client's stream for one at a time, so that flow control holds it back.
 * Where the client does not stream, its one message counts once the half-close shows that no other follows.
 */
class RequestReader implements AsyncIterableIterator<Uint8Array, void, undefined> {
  readonly #call: ServerInterceptingCallInterface;
  readonly #method: RpcMethod;
  readonly #signal: AbortSignal;
  #waiting: PromiseWithResolvers<IteratorResult<Uint8Array, void>> | undefined;
  #received: Uint8Array[] = [];
  #count = 0;
  #halfClosed = false;
  #failure: ModelError | undefined;

  constructor(call: ServerInterceptingCallInterface, method: RpcMethod, signal: AbortSignal) {
    this.#call = call;
    this.#method = method;
    this.#signal = signal;
    signal.addEventListener("abort", () => this.#settle(), { once: true });
  }

  receive(bytes: Uint8Array): void {
    this.#count++;
    if (this.#count > 1 && !this.#method.clientStreaming) {
      this.#failure = new ModelError(
        "invalid_argument",
        `Cannot read the request: ${this.#method.name} takes one message, got more`,
      );
    }
    this.#received.push(bytes);
    if (!this.#settle() && this.#waiting) this.#call.startRead();
  }

  end(): void {
    if (readsMessage(this.#call)) {
      this.#failure = new ModelError("invalid_argument", "Cannot read the request: the stream ended within a message");
    }
    this.#halfClosed = true;
    this.#settle();
  }

  /** The call has its status: nobody reads on. */
  stop(): void {
    this.#received = [];
  }

  next(): Promise<IteratorResult<Uint8Array, void>> {
    this.#waiting = Promise.withResolvers();
    const { promise } = this.#waiting;
    if (!this.#settle()) this.#call.startRead();
    return promise;
  }

  return(): Promise<IteratorResult<Uint8Array, void>> {
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #settle(): boolean {
    const waiting = this.#waiting;
    if (!waiting) return false;
    const result = this.#result();
    if (!result) return false;
    this.#waiting = undefined;
    if (result instanceof ModelError) waiting.reject(result);
    else waiting.resolve(result);
    return true;
  }

  #result(): IteratorResult<Uint8Array, void> | ModelError | undefined {
    if (this.#signal.aborted) return this.#signal.reason;
    if (this.#failure) return this.#failure;
    if (!this.#method.clientStreaming && !this.#halfClosed) return undefined;
    const value = this.#received.shift();
    if (value) return { done: false, value };
    return this.#halfClosed ? { done: true, value: undefined } : undefined;
  }
}

/** Parts of grpc-js's base call that its interface does not show. */
interface BaseCall {
  readonly stream?: { readonly id?: number; destroy?(): void; cork?(): void; uncork?(): void };
  readonly decoder?: { readonly readState?: number };
}

function toBuffer(bytes: Uint8Array): Buffer {
  return bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function peerOf({ remoteAddress, remotePort }: Peer): string | undefined {
  return remoteAddress === undefined ? undefined : `${remoteAddress}:${remotePort}`;
}

function streamIdOf(call: ServerInterceptingCallInterface): number {
  return (call as unknown as BaseCall).stream?.id ?? 0;
}

// grpc-js drops a message that the half-close cuts short; its decoder still knows.
function readsMessage(call: ServerInterceptingCallInterface): boolean {
  return ((call as unknown as BaseCall).decoder?.readState ?? 0) !== 0;
}
