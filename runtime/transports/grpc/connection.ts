// The TCP listener: our own, so that its sockets can be tuned and, at the end of a shutdown, closed.
import type { ConnectionInjector } from "@grpc/grpc-js";
import net from "node:net";
import { FlowMeter } from "./flow.ts";
import { SHUTDOWN_NOTICE } from "./frames.ts";
import { WriteGatherer } from "./gather.ts";
import { watchIncoming } from "./incoming.ts";

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
  /** What has left on the connection of a peer. */
  flowOf(peer: Peer): FlowMeter | undefined;
  /** Refuses new connections, and tells the peers of those there are to make their next calls elsewhere. */
  close(): void;
  /** Resolves when no connection is left. */
  disconnected(): Promise<void>;
  /** Closes the connections that are left. */
  destroyConnections(): void;
}

/** Listens; rejects where the address cannot be had. */
export function listen(address: Address, injector: ConnectionInjector): Promise<Listener> {
  const sockets = new Set<net.Socket>();
  const meters = new Map<string, FlowMeter>();
  let isClosing = false;
  const server = net.createServer({ noDelay: true }, (socket) => {
    const peer = keyOf(socket);
    const gatherer = new WriteGatherer(socket);
    const meter = new FlowMeter(socket, () => gatherer.flush());
    sockets.add(socket);
    meters.set(peer, meter);
    watchIncoming(socket, (streamId) => meter.reset(streamId));
    socket.on("close", () => {
      sockets.delete(socket);
      meters.delete(peer);
      meter.close();
    });
    socket.on("error", () => {}); // a reset connection: its calls hear of it as a cancel
    injector.injectConnection(socket);
    if (isClosing) meter.insert(SHUTDOWN_NOTICE); // accepted before, heard of after
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: address.hostname, port: address.port, reusePort: address.reusePort ?? false }, () => {
      server.off("error", reject);
      server.on("error", () => {}); // a failed accept (out of descriptors, say) is no reason to stop
      const { address: hostname, port } = server.address() as net.AddressInfo;
      resolve({
        address: { transport: "tcp", hostname, port },
        flowOf: (peer) => meters.get(keyOf(peer)),
        close() {
          if (isClosing) return;
          isClosing = true;
          server.close();
          for (const meter of meters.values()) meter.insert(SHUTDOWN_NOTICE);
        },
        async disconnected() {
          while (sockets.size > 0) await Promise.all([...sockets].map(closed));
        },
        destroyConnections: () => sockets.forEach((socket) => socket.destroy()),
      });
    });
  });
}

// Not events.once(), which rejects for a connection that ends in an error.
function closed(socket: net.Socket): Promise<void> {
  return new Promise((resolve) => socket.once("close", () => resolve()));
}

function keyOf({ remoteAddress, remotePort }: Peer): string {
  return `${remoteAddress} ${remotePort}`;
}
