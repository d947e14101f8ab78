// The TCP listener: our own, so that its sockets can be tuned and, at the end of a shutdown, closed.
import type { ConnectionInjector } from "@grpc/grpc-js";
import net from "node:net";

/** Where to listen. */
export interface Address {
  readonly hostname: string;
  /** 0 = any. */
  readonly port: number;
}

/** A listener whose connections go to an HTTP/2 server. */
export interface Listener {
  readonly address: Deno.NetAddr;
  /** Refuses new connections. */
  close(): void;
  /** Closes the connections that are left. */
  destroyConnections(): void;
}

/** Listens; rejects where the address cannot be had. */
export function listen(address: Address, injector: ConnectionInjector): Promise<Listener> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {}); // a reset connection: its calls hear of it as a cancel
    injector.injectConnection(socket);
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: address.hostname, port: address.port }, () => {
      server.off("error", reject);
      server.on("error", () => {}); // a failed accept (out of descriptors, say) is no reason to stop
      const { address: hostname, port } = server.address() as net.AddressInfo;
      resolve({
        address: { transport: "tcp", hostname, port },
        close: () => void server.close(),
        destroyConnections: () => sockets.forEach((socket) => socket.destroy()),
      });
    });
  });
}
