// The HTTP server, on node:http, whose timeouts and sockets Deno.serve does not offer: hands requests to the app, and
// shuts down in bounded time.
import { getRequestListener } from "@hono/node-server";
import http from "node:http";
import type net from "node:net";
import { cancelledByClient, shuttingDown, within } from "../../core/signal.ts";
import type { HttpRoute } from "../../protocols/adapter.ts";
import { traceparentOf } from "../deno_span.ts";
import { sharesPort, startListening, stopListening, untilClosed } from "../listener.ts";
import { type AppOptions, createApp } from "./app.ts";
import { isLoopback } from "./origin.ts";

/** The options of {@linkcode serveHttp}. */
export interface HttpOptions extends Omit<AppOptions, "isLoopback"> {
  readonly hostname: string;
  /** 0 = any. */
  readonly port: number;
  /** Other processes that say so too may listen there at the same time, on Linux. */
  readonly reusePort: boolean;
  /** How long a request may take to come, in milliseconds. */
  readonly requestTimeoutMs: number;
}

/** An HTTP server that listens. */
export interface HttpServer {
  readonly address: Deno.NetAddr;
  /** Refuses new connections; those that have no request end. */
  close(): Promise<void>;
  /** Waits for the requests in progress for `graceMs`, then ends them. */
  shutdown(graceMs: number): Promise<void>;
  /** Ends the requests in progress now, in a shutdown that waits for them. */
  abortCalls(): void;
}

/** How long a request's headers may take to come. */
const HEADERS_TIMEOUT_MS = 10_000;
/** How often it is looked for requests that take too long. */
const CHECK_MS = 1_000;
/** How long a connection stays open between two requests. */
const KEEP_ALIVE_MS = 60_000;
/** What the last answers get to reach their clients. */
const FLUSH_MS = 500;

/** Serves `routes`; rejects where the address cannot be had. */
export async function serveHttp(routes: readonly HttpRoute[], options: HttpOptions): Promise<HttpServer> {
  const { hostname, port, reusePort, maxMessageBytes, requestTimeoutMs } = options;
  const app = createApp(routes, { ...options, isLoopback: isLoopback(hostname) });
  const open = new Map<http.ServerResponse, AbortController>();
  const sockets = new Set<net.Socket>();
  let isClosing = false;
  const listener = getRequestListener(
    (request, { incoming, outgoing }) => {
      const controller = new AbortController();
      const answer = outgoing as http.ServerResponse;
      open.set(answer, controller);
      answer.once("close", () => {
        open.delete(answer);
        if (!answer.writableFinished) controller.abort(cancelledByClient());
      });
      answer.once("finish", () => discardRest(incoming as http.IncomingMessage, maxMessageBytes));
      if (isClosing) answer.shouldKeepAlive = false;
      const { remoteAddress, remotePort } = (incoming as http.IncomingMessage).socket;
      return app(request, controller.signal, {
        peer: remoteAddress && `${remoteAddress}:${remotePort}`,
        traceparent: traceparentOf(answer),
      });
    },
    { overrideGlobalObjects: false, autoCleanupIncoming: false },
  );
  const server = http.createServer({
    headersTimeout: Math.min(HEADERS_TIMEOUT_MS, requestTimeoutMs),
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: CHECK_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    noDelay: true,
  }, (request, response) => void listener(request, response));
  server.on("connection", (socket: net.Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  const address = await startListening(server, { host: hostname, port, reusePort });
  const abortCalls = () => open.forEach((controller) => controller.abort(shuttingDown()));
  const close = async () => {
    if (isClosing) return;
    isClosing = true;
    for (const answer of open.keys()) answer.shouldKeepAlive = false;
    await stopListening(server, sharesPort({ reusePort }));
    server.closeIdleConnections();
  };
  return {
    address,
    close,
    abortCalls,
    async shutdown(graceMs) {
      await close();
      const answered = () => untilClosed(() => [...open.keys()]);
      if (!await within(graceMs, answered())) {
        abortCalls();
        await within(FLUSH_MS, answered());
      }
      for (const socket of sockets) socket.destroy();
      await within(FLUSH_MS, untilClosed(() => [...sockets]));
    },
  };
}

// What a route did not read of a body stands before the connection's next request.
function discardRest(incoming: http.IncomingMessage, maxBytes: number): void {
  if (incoming.readableEnded || incoming.destroyed) return;
  let left = maxBytes;
  incoming.on("data", ({ length }: Uint8Array) => {
    left -= length;
    if (left < 0) incoming.socket.destroy();
  });
}
