// The gRPC server, on @grpc/grpc-js: hands every call to GrpcCall, and shuts down in bounded time.
import grpc from "@grpc/grpc-js";
import type { Buffer } from "node:buffer";
import type { EventEmitter } from "node:events";
import type { ServerHttp2Session } from "node:http2";
import type { Logger } from "../../core/log.ts";
import { deadlineExceeded, shuttingDown, within } from "../../core/signal.ts";
import type { RpcMethod, RpcService } from "../../protocols/adapter.ts";
import { traceparentOf } from "../deno_span.ts";
import { type CallEnvironment, GrpcCall } from "./call.ts";
import { type Address, listen } from "./connection.ts";
import { patchHttp2Close } from "./http2_patch.ts";
import type { KeepaliveTimes } from "./keepalive.ts";

/** The options of {@linkcode serveGrpc}. */
export interface GrpcOptions extends Address, KeepaliveTimes {
  /** The largest message either way, in bytes. */
  readonly maxMessageBytes: number;
  /** Aborts when the shutdown begins. */
  readonly draining: AbortSignal;
  /** How long the one message of a call may take to come, in milliseconds. */
  readonly requestTimeoutMs: number;
  readonly log: Logger;
}

/** A gRPC server that listens. */
export interface GrpcServer {
  readonly address: Deno.NetAddr;
  /**
   * Refuses new connections, and has the clients make their next calls elsewhere; the calls that they have sent before
   * they knew are taken. Waits for `timeoutMs` at most until all know.
   */
  announceShutdown(timeoutMs: number): Promise<void>;
  /** Refuses new calls, waits for those in progress for `graceMs`, then ends them. */
  shutdown(graceMs: number): Promise<void>;
  /** Ends the calls in progress now, in a shutdown that waits for them. */
  abortCalls(): void;
}

/** What the last statuses and GOAWAY frames get to reach their peers. */
const FLUSH_MS = 500;

/** Serves `services`; rejects where the address cannot be had. */
export async function serveGrpc(services: readonly RpcService[], options: GrpcOptions): Promise<GrpcServer> {
  patchHttp2Close();
  const { maxMessageBytes, draining, requestTimeoutMs, log } = options;
  const environment: CallEnvironment = {
    maxMessageBytes,
    requestTimeoutMs,
    log,
    draining,
    open: new Set(),
    connectionOf: (peer) => listener.connectionOf(peer),
  };
  const methods = new Map<string, RpcMethod>();
  const server = new grpc.Server({
    "grpc.enable_channelz": 0, // counts every call for a service that is not served
    "grpc.max_receive_message_length": maxMessageBytes,
    "grpc.max_send_message_length": -1, // the limit's text is ours: run_method.ts
    interceptors: [(definition, call) => takeOver(call, definition.path, methods.get(definition.path)!, environment)],
  });
  for (const service of services) addService(server, service, methods);
  prepareHttp2(server, (session) => listener.attach(session, options));
  const injector = server.createConnectionInjector(grpc.ServerCredentials.createInsecure());
  const listener = await listen(options, injector, () => {
    log.error("The listener took no connections any more, for want of descriptors perhaps: it is replaced");
  });
  const abortCalls = () => environment.open.forEach((call) => call.abort(shuttingDown()));
  return {
    address: listener.address,
    abortCalls,
    async announceShutdown(timeoutMs) {
      await listener.close();
      await within(timeoutMs, listener.told());
      // Of calls that came in one read with the answer to a ping Deno and grpc-js tell in this turn of the event loop.
      await new Promise<void>((resolve) => setImmediate(resolve));
    },
    async shutdown(graceMs) {
      await listener.close();
      // Sends the last GOAWAY. Its callback says nothing here: Deno calls it with streams still open, and never where a
      // client leaves a bare connection open.
      server.tryShutdown(() => {});
      if (!await within(graceMs, untilEmpty(environment.open))) {
        abortCalls();
        await within(FLUSH_MS, untilEmpty(environment.open));
      }
      await within(FLUSH_MS, listener.disconnected());
      server.forceShutdown();
      listener.destroyConnections();
    },
  };
}

function addService(server: grpc.Server, service: RpcService, methods: Map<string, RpcMethod>): void {
  const definition: Record<string, grpc.MethodDefinition<Buffer, Buffer>> = {};
  for (const method of service.methods) {
    const path = `/${service.name}/${method.name}`;
    methods.set(path, method);
    const asIs = (bytes: Buffer) => bytes; // decoded and encoded in run_method.ts, for errors with the right status
    definition[method.name] = {
      path,
      requestStream: true,
      responseStream: true,
      requestSerialize: asIs,
      requestDeserialize: asIs,
      responseSerialize: asIs,
      responseDeserialize: asIs,
    };
  }
  const unused = () => {}; // takeOver() answers every call
  server.addService(definition, Object.fromEntries(Object.keys(definition).map((name) => [name, unused])));
}

// An interceptor that answers the call itself, instead of the handler behind it.
function takeOver(
  call: grpc.ServerInterceptingCallInterface,
  path: string,
  method: RpcMethod,
  environment: CallEnvironment,
): grpc.ServerInterceptingCall {
  const sendStatus = call.sendStatus.bind(call);
  const own = new GrpcCall(call, sendStatus, path, method, environment);
  // What grpc-js sends by itself: its own deadline would end a stream whose bytes have not left.
  call.sendStatus = (status) => {
    if (status.code === grpc.status.DEADLINE_EXCEEDED) own.abort(deadlineExceeded());
    else sendStatus(nameLimit(status, environment.maxMessageBytes));
  };
  return { start: () => own.start() } as unknown as grpc.ServerInterceptingCall;
}

type PartialStatus = Parameters<grpc.ServerInterceptingCallInterface["sendStatus"]>[0];

// grpc-js refuses too large requests by itself, but does not say what to do about it.
function nameLimit(status: PartialStatus, maxBytes: number): PartialStatus {
  if (status.code !== grpc.status.RESOURCE_EXHAUSTED || !status.details?.startsWith("Received message")) return status;
  const got = /\((\d+) vs/.exec(status.details)?.[1];
  const size = got ? `it takes ${got} bytes` : "it is too large once decompressed";
  return { ...status, details: `Cannot read the request: ${size}, the limit is ${maxBytes} (option maxMessageBytes)` };
}

/** 31 bits of milliseconds, in seconds: what grpc-js's timer can hold. */
const MAX_TIMEOUT_SECONDS = 2_147_483;
const UNIT_SECONDS: Readonly<Record<string, number>> = { H: 3600, M: 60, S: 1 };

// Tells of the HTTP/2 sessions, and calls continue Deno's spans. And grpc-js counts a timeout in 31 bits: one of more than
// 24.8 days would lie in the past.
function prepareHttp2(server: grpc.Server, onSession: (session: ServerHttp2Session) => void): void {
  const internals = server as unknown as { createHttp2Server(credentials: unknown): EventEmitter };
  const create = internals.createHttp2Server;
  internals.createHttp2Server = (credentials) => {
    const http2Server = create.call(server, credentials);
    http2Server.on("session", onSession);
    http2Server.prependListener("stream", (stream: object, headers: Record<string, unknown>) => {
      const traceparent = traceparentOf(stream);
      if (traceparent !== undefined) headers["traceparent"] = traceparent;
      const match = /^(\d{1,8})([HMS])$/.exec(String(headers["grpc-timeout"]));
      if (match && Number(match[1]) * UNIT_SECONDS[match[2]!]! > MAX_TIMEOUT_SECONDS) {
        headers["grpc-timeout"] = `${MAX_TIMEOUT_SECONDS}S`;
      }
    });
    return http2Server;
  };
}

async function untilEmpty(open: ReadonlySet<GrpcCall>): Promise<void> {
  while (open.size > 0) await Promise.all([...open].map((call) => call.finished));
}
