// The TCP listener: our own, so that its sockets can be tuned and, at the end of a shutdown, closed.
import type { ConnectionInjector } from "@grpc/grpc-js";
import type { ServerHttp2Session } from "node:http2";
import net from "node:net";
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
  close(): void;
  /** Resolves when the peers have read what was sent to them so far, or are gone; undefined where there is none. */
  delivered(): Promise<void> | undefined;
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
    if (isClosing) connection.meter.insert(SHUTDOWN_NOTICE); // accepted before, heard of after
  };
  const onConnection = (socket: net.Socket) => watch.taken(socket, () => serve(socket));
  let server = await startListening({ host, port, reusePort }, onConnection);
  const { address: hostname, port: taken } = server.address() as net.AddressInfo;
  const relisten = async () => {
    onDeaf();
    server.close();
    server = await startListening({ host, port: taken, reusePort }, onConnection);
    watch.renew();
    if (isClosing) server.close();
  };
  const isShared = reusePort && Deno.build.os === "linux";
  const watch = new AcceptWatch({ hostname, port: taken, isShared }, () => {
    relisten().catch(() => {}); // the watch asks again
  });
  return {
    address: { transport: "tcp", hostname, port: taken },
    connectionOf,
    attach: (session, times) => connectionOf(session.socket)?.attach(session, times),
    close() {
      if (isClosing) return;
      isClosing = true;
      watch.stop();
      server.close();
      for (const { meter } of connections.values()) meter.insert(SHUTDOWN_NOTICE);
    },
    delivered() {
      const live = [...connections.values()].filter(({ isLive }) => isLive);
      return live.length > 0 ? Promise.all(live.map((peer) => peer.roundTrip())).then(() => {}) : undefined;
    },
    async disconnected() {
      while (connections.size > 0) await Promise.all([...connections.values()].map(({ socket }) => closed(socket)));
    },
    destroyConnections: () => connections.forEach(({ socket }) => socket.destroy()),
  };
}

function startListening(options: net.ListenOptions, onConnection: (socket: net.Socket) => void): Promise<net.Server> {
  const server = net.createServer({ noDelay: true }, onConnection);
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(options, () => {
      server.off("error", reject);
      server.on("error", () => {}); // a failed accept is no reason to stop
      resolve(server);
    });
  });
}

/** HTTP/2's windows of a connection that has brought a large message, in bytes. */
const LARGE_WINDOW = 1024 * 1024;

/** What is kept beside a socket. */
export class Connection {
  readonly socket: net.Socket;
  /** What has left on it. */
  readonly meter: FlowMeter;
  #session: ServerHttp2Session | undefined;
  #keepalive: Keepalive | undefined;
  #isWide = false;

  constructor(socket: net.Socket) {
    this.socket = socket;
    this.meter = new FlowMeter(socket);
    gatherWrites(socket);
    watchIncoming(socket, {
      onBytes: () => this.#keepalive?.heard(),
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

  /** Resolves when the peer has read what was sent before, or is gone. */
  roundTrip(): Promise<void> {
    return new Promise((resolve) => {
      this.socket.once("close", () => resolve());
      if (!this.#session?.ping(() => resolve())) resolve();
    });
  }

  /** The socket is closed. */
  close(): void {
    this.#keepalive?.stop();
    this.meter.close();
  }

  // Nothing that waits for the peer must stay: ended in any other way the descriptor is kept, and the kernel goes on
  // sending for minutes. The calls are told first: Deno would have them believe that their requests are complete.
  #reset(): void {
    this.meter.close();
    this.socket.resetAndDestroy();
  }
}

// Not events.once(), which rejects for a connection that ends in an error.
function closed(socket: net.Socket): Promise<void> {
  return new Promise((resolve) => socket.once("close", () => resolve()));
}

function keyOf({ remoteAddress, remotePort }: Peer): string {
  return `${remoteAddress} ${remotePort}`;
}
