// The TCP listener: our own, so that its sockets can be tuned and, at the end of a shutdown, closed.
import type { ConnectionInjector } from "@grpc/grpc-js";
import type { ServerHttp2Session } from "node:http2";
import net from "node:net";
import { within } from "../../core/signal.ts";
import { sharesPort, startListening, stopListening, untilClosed } from "../listener.ts";
import { AcceptWatch } from "./accept_watch.ts";
import { FlowMeter } from "./flow.ts";
import { SHUTDOWN_NOTICE } from "./frames.ts";
import { gatherWrites } from "./gather.ts";
import { watchIncoming } from "./incoming.ts";
import { Keepalive, type KeepaliveTimes } from "./keepalive.ts";

/** Where to listen. */
export interface Address {
  readonly hostname: string;
  /** 0 = any. */
  readonly port: number;
  /** Other processes that say so too may listen there at the same time, on Linux. */
  readonly reusePort?: boolean;
}

/** The other end of a connection. */
export interface Peer {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
}

/** A listener whose connections go to an HTTP/2 server. */
export interface Listener {
  readonly address: Deno.NetAddr;
  /** The connection of a peer. */
  connectionOf(peer: Peer): Connection | undefined;
  /** The session on a connection. Its peer is pinged when it is silent; a connection whose peer is gone is reset. */
  attach(session: ServerHttp2Session, times: KeepaliveTimes): void;
  /** Refuses new connections, and tells the peers of those there are to make their next calls elsewhere. */
  close(): Promise<void>;
  /** Resolves when the peers have read what `close` tells them, or are gone. */
  told(): Promise<void>;
  /** Resolves when no connection is left. */
  disconnected(): Promise<void>;
  /** Closes the connections that are left. */
  destroyConnections(): void;
}

/** Listens; rejects where the address cannot be had. `onDeaf` is told of a listener that had to be replaced. */
export async function listen(
  { hostname: host, port, reusePort = false }: Address,
  injector: ConnectionInjector,
  onDeaf: () => void,
): Promise<Listener> {
  const connections = new Map<string, Connection>();
  const connectionOf = (peer: Peer) => connections.get(keyOf(peer));
  const told: Promise<void>[] = [];
  let isClosing = false;
  const serve = (socket: net.Socket) => {
    const key = keyOf(socket);
    const connection = new Connection(socket);
    connections.set(key, connection);
    socket.on("close", () => {
      connections.delete(key);
      connection.close();
    });
    injector.injectConnection(socket);
    if (isClosing) told.push(connection.announceShutdown()); // accepted before, heard of after
  };
  const onConnection = (socket: net.Socket) => watch.taken(socket, () => serve(socket));
  const createServer = () => net.createServer({ noDelay: true }, onConnection);
  let server = createServer();
  const address = await startListening(server, { host, port, reusePort });
  const relisten = async () => {
    onDeaf();
    server.close();
    const next = createServer();
    await startListening(next, { host, port: address.port, reusePort });
    server = next;
    watch.renew();
    if (isClosing) server.close();
  };
  const isShared = sharesPort({ reusePort });
  const watch = new AcceptWatch({ ...address, isShared }, () => {
    relisten().catch(() => {}); // the watch asks again
  });
  return {
    address,
    connectionOf,
    attach: (session, times) => connectionOf(session.socket)?.attach(session, times),
    async close() {
      if (isClosing) return;
      isClosing = true;
      watch.stop();
      for (const connection of connections.values()) told.push(connection.announceShutdown());
      await stopListening(server, isShared);
    },
    told: async () => void await Promise.all(told),
    disconnected: () => untilClosed(() => [...connections.values()].map(({ socket }) => socket)),
    destroyConnections: () => connections.forEach(({ socket }) => socket.destroy()),
  };
}

/** HTTP/2's windows of a connection that has brought a large message, in bytes. */
const LARGE_WINDOW = 1024 * 1024;

/** How long a connection may wait for its first call, in milliseconds, before it counts as one that waits for none. */
const FIRST_CALL_MS = 250;

/** What is kept beside a socket. */
export class Connection {
  readonly socket: net.Socket;
  /** What has left on it. */
  readonly meter: FlowMeter;
  readonly #madeAt = performance.now();
  #hasCalls = false;
  #onFirstCall: (() => void) | undefined;
  #session: ServerHttp2Session | undefined;
  #keepalive: Keepalive | undefined;
  #isWide = false;

  constructor(socket: net.Socket) {
    this.socket = socket;
    this.meter = new FlowMeter(socket);
    gatherWrites(socket);
    watchIncoming(socket, {
      onBytes: () => this.#keepalive?.heard(),
      onHeaders: () => {
        this.#hasCalls = true;
        this.#onFirstCall?.();
      },
      onReset: (streamId) => this.meter.reset(streamId),
    });
    socket.on("drain", () => this.meter.drained());
    socket.on("error", () => {}); // a reset connection: its calls hear of it as a cancel
  }

  attach(session: ServerHttp2Session, times: KeepaliveTimes): void {
    this.#session = session;
    this.#keepalive = new Keepalive({
      ...times,
      ping: () => session.destroyed || session.ping(() => {}),
      onDead: () => this.#reset(),
    });
  }

  /**
   * Has the peer send more before it waits. A window of 64 KiB stops a 602 KB tensor nine times; but every connection
   * with a larger one could fill it with messages of no bytes, which take 0.3 KB each, so it is for those that have
   * brought a large message.
   */
  widen(): void {
    if (this.#isWide || !this.isLive) return;
    this.#isWide = true;
    this.#session!.settings({ initialWindowSize: LARGE_WINDOW });
    this.#session!.setLocalWindowSize(LARGE_WINDOW);
  }

  /** Whether it can be written to. */
  get isLive(): boolean {
    return this.#session !== undefined && !this.#session.destroyed && !this.#session.closed;
  }

  /**
   * Tells the peer to make its next calls elsewhere; resolves when it has read that, or is gone. To one that is about to
   * make its first call a GOAWAY would be that call's end (in gRPC's C core): it is told after that.
   */
  async announceShutdown(): Promise<void> {
    const waitMs = this.#madeAt + FIRST_CALL_MS - performance.now();
    if (!this.#hasCalls && waitMs > 0) {
      await within(waitMs, new Promise<void>((resolve) => this.#onFirstCall = resolve));
    }
    this.meter.insert(SHUTDOWN_NOTICE);
    if (this.isLive) await this.#roundTrip();
  }

  #roundTrip(): Promise<void> {
    return new Promise((resolve) => {
      this.socket.once("close", () => resolve());
      if (!this.#session?.ping(() => resolve())) resolve();
    });
  }

  /** The socket is closed. */
  close(): void {
    this.#keepalive?.stop();
    this.meter.close();
    this.#onFirstCall?.();
  }

  // Nothing that waits for the peer must stay: ended in any other way the descriptor is kept, and the kernel goes on
  // sending for minutes. The calls are told first: Deno would have them believe that their requests are complete.
  #reset(): void {
    this.meter.close();
    this.socket.resetAndDestroy();
  }
}

function keyOf({ remoteAddress, remotePort }: Peer): string {
  return `${remoteAddress} ${remotePort}`;
}
