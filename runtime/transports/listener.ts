// A listener that is opened and closed, whatever is served on its connections.
import type net from "node:net";

/** Listens; rejects where the address cannot be had. */
export function startListening(server: net.Server, options: net.ListenOptions): Promise<Deno.NetAddr> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(options, () => {
      server.off("error", reject);
      server.on("error", () => {}); // a failed accept is no reason to stop
      const { address, port } = server.address() as net.AddressInfo;
      resolve({ transport: "tcp", hostname: address, port });
    });
  });
}

/** Whether other processes may listen on the same port at the same time. */
export function sharesPort({ reusePort = false }: { readonly reusePort?: boolean }): boolean {
  return reusePort && Deno.build.os === "linux";
}

/** Closes a listener; `isShared` says whether others may listen on its port. */
export async function stopListening(server: net.Server, isShared: boolean): Promise<void> {
  if (isShared) await quietMoment();
  server.close();
}

/** A turn of the event loop that took less did nothing else, in milliseconds. */
const QUIET_TURN_MS = 0.2;
/** For how long such a turn is waited for. */
const QUIET_WITHIN_MS = 200;

// Resolves when all connections that came are accepted. One that comes after that, and before the listener is closed, is
// reset, though others listen on its port: with net.ipv4.tcp_migrate_req=1 only does Linux give it to them.
async function quietMoment(): Promise<void> {
  const end = performance.now() + QUIET_WITHIN_MS;
  let began: number;
  do {
    await new Promise((resolve) => setTimeout(resolve)); // has the process look what came
    began = performance.now();
    await new Promise<void>((resolve) => setImmediate(resolve));
  } while (performance.now() - began > QUIET_TURN_MS && performance.now() < end);
}

/** What ends at some time. */
interface Closing {
  once(event: "close", listener: () => void): unknown;
}

/** Resolves when `open` gives nothing any more. */
export async function untilClosed(open: () => readonly Closing[]): Promise<void> {
  for (let left = open(); left.length > 0; left = open()) await Promise.all(left.map(closed));
}

// Not events.once(), which rejects for a connection that ends in an error.
function closed(each: Closing): Promise<void> {
  return new Promise((resolve) => each.once("close", resolve));
}
