// One call's life: request messages pulled one by one, responses written no faster than the client takes them, and
// exactly one status. Works on grpc-js's own base call (the interceptor API): no stream objects in between.
import { Metadata, type ServerInterceptingCallInterface, status } from "@grpc/grpc-js";
import { Buffer } from "node:buffer";
import { ModelError, toModelError } from "../../core/error.ts";
import type { Logger } from "../../core/log.ts";
import { atDeadline, cancelledByClient, deadlineExceeded } from "../../core/signal.ts";
import type { RpcMethod } from "../../protocols/adapter.ts";
import { requestIdOf, runMethod, type TransportContext } from "../run_method.ts";
import type { Peer } from "./connection.ts";
import type { FlowMeter, StreamFlow } from "./flow.ts";
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
  /** What has left on the connection of a peer. */
  readonly flowOf: (peer: Peer) => FlowMeter | undefined;
}

/** Bytes of a stream that may wait for the client's flow control window; beyond it the handler waits. */
const MAX_UNSENT_BYTES = 65_536;
/** What gRPC puts before each message. */
const MESSAGE_HEADER_BYTES = 5;

/** A call in progress. */
export class GrpcCall {
  readonly #call: ServerInterceptingCallInterface;
  readonly #method: RpcMethod;
  readonly #environment: CallEnvironment;
  readonly #controller = new AbortController();
  readonly #requests: RequestReader;
  readonly #finish = Promise.withResolvers<void>();
  #ended = false;
  readonly #streamId: number;
  #disarm: (() => void) | undefined;
  #disarmRequest: (() => void) | undefined;
  readonly #meter: FlowMeter | undefined;
  readonly #flow: StreamFlow | undefined;
  #messages = 0;
  #handedOver = 0;

  constructor(call: ServerInterceptingCallInterface, method: RpcMethod, environment: CallEnvironment) {
    this.#call = call;
    this.#method = method;
    this.#environment = environment;
    this.#requests = new RequestReader(call, method, this.#controller.signal);
    this.#streamId = streamIdOf(call);
    this.#meter = environment.flowOf(call.getConnectionInfo());
    this.#flow = this.#meter?.track(this.#streamId);
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
      onReceiveMessage: (bytes) => this.#requests.receive(bytes),
      onReceiveHalfClose: () => {
        this.#disarmRequest?.();
        this.#requests.end();
      },
      onCancel: () => {
        // Also fires after every call that ended normally.
        if (!this.#ended) this.abort(this.#isPastDeadline() ? deadlineExceeded() : cancelledByClient());
        this.#leave();
      },
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
    // grpc-js's own timer sends a status, which waits behind what the client does not take; this one frees the call.
    if (!this.#method.clientStreaming) {
      const latest = Date.now() + this.#environment.requestTimeoutMs;
      this.#disarmRequest = atDeadline(latest, () => this.abort(deadlineExceeded()));
    }
    if (deadline !== undefined) this.#disarm = atDeadline(deadline, () => this.abort(deadlineExceeded()));
    const id = requestIdOf(metadata);
    const responseMetadata = new Headers({ "request-id": id });
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
      log: this.#environment.log,
    };
    try {
      this.#environment.draining.throwIfAborted();
      for await (const bytes of runMethod(this.#method, this.#requests, context)) {
        this.#controller.signal.throwIfAborted();
        if (this.#messages === 0) this.#call.sendMetadata(toMetadata(responseMetadata));
        await this.#send(bytes);
      }
      this.#controller.signal.throwIfAborted();
      this.#end({ code: status.OK, details: "OK", metadata: toMetadata(trailers) });
    } catch (thrown) {
      const error = toModelError(this.#controller.signal.aborted ? this.#controller.signal.reason : thrown, id);
      if (this.#messages === 0) trailers.set("request-id", id);
      this.#end(statusOf(error, toMetadata(trailers)));
    }
  }

  #end(end: { readonly code: number; readonly details: string; readonly metadata: Metadata }): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#disarm?.();
    this.#disarmRequest?.();
    this.#requests.stop();
    this.#call.sendStatus(end);
    const flow = this.#flow;
    if (!flow || flow.sent >= this.#handedOver) return this.#leave();
    flow.onSent = () => {
      if (flow.sent >= this.#handedOver) this.#leave();
    };
  }

  // Only now is the call over: its last bytes may have waited for the client's window.
  #leave(): void {
    this.#environment.open.delete(this);
    this.#meter?.untrack(this.#streamId);
    this.#finish.resolve();
  }

  /** Resolves when the handler may go on. */
  #send(bytes: Uint8Array): Promise<void> | void {
    const isFirst = this.#messages++ === 0;
    this.#handedOver += bytes.length + MESSAGE_HEADER_BYTES;
    this.#call.sendMessage(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), () => {});
    const flow = this.#flow;
    if (!flow) return;
    // The first token is on its way before the handler works on the second, even where that blocks the event loop.
    const room = isFirst && this.#method.serverStreaming ? 0 : MAX_UNSENT_BYTES;
    if (this.#handedOver - flow.sent <= room) return;
    return new Promise((resolve) => {
      flow.onSent = () => {
        if (this.#handedOver - flow.sent > room && !this.#controller.signal.aborted) return;
        flow.onSent = undefined;
        resolve();
      };
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
  readonly stream?: { readonly id?: number };
  readonly decoder?: { readonly readState?: number };
}

function streamIdOf(call: ServerInterceptingCallInterface): number {
  return (call as unknown as BaseCall).stream?.id ?? 0;
}

// grpc-js drops a message that the half-close cuts short; its decoder still knows.
function readsMessage(call: ServerInterceptingCallInterface): boolean {
  return ((call as unknown as BaseCall).decoder?.readState ?? 0) !== 0;
}
