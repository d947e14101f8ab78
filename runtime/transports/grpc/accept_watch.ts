// Notices a listener that takes no connections any more. Where accept() has failed once, for want of descriptors say,
// Deno's net.Server goes deaf for good and tells nobody: connections wait in the kernel until their clients give up.
import net from "node:net";
import { AcceptQueue } from "./accept_queue.ts";

/** A listener that has taken nothing for so long is asked whether it still does. */
const QUIET_MS = 10_000;
/** What it has to take a connection of our own. */
const ACCEPT_MS = 5_000;

/** Where a listener can be reached. */
export interface Reachable {
  readonly hostname: string;
  readonly port: number;
  /**
   * Whether connections may come to others who listen there: whether the listener takes its own is told by what waits for
   * it, for a connection of ours says nothing.
   */
  readonly isShared?: boolean;
}

/** Asks a listener that is quiet, until `stop`. */
export class AcceptWatch {
  readonly #address: Reachable;
  readonly #onDeaf: () => void;
  #queue: AcceptQueue | undefined;
  #probe: net.Socket | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `onDeaf` is called when a connection was refused, or made and not taken; the listener may be another one then. */
  constructor(address: Reachable, onDeaf: () => void) {
    this.#address = address;
    this.#onDeaf = onDeaf;
    this.renew();
    this.#wait();
  }

  /** The listener is another one. */
  renew(): void {
    if (this.#address.isShared) this.#queue = new AcceptQueue(this.#address.port);
  }

  /** A connection was taken: calls `serve`, unless it is our own, which is for nothing else. */
  taken(socket: net.Socket, serve: () => void): void {
    const probe = this.#probe;
    let isDecided = false;
    const decide = () => {
      if (isDecided) return;
      isDecided = true;
      const isOurs = probe !== undefined && socket.remotePort === probe.localPort;
      if (this.#timer !== undefined) this.#wait();
      if (isOurs) socket.destroy();
      else serve();
    };
    // Both of its ends are ours: this one may be heard of before the other one is told its port.
    if (probe?.connecting) probe.once("connect", decide).once("close", decide);
    else decide();
  }

  /** The listener is closed. */
  stop(): void {
    this.#end();
    this.#timer = undefined;
  }

  #end(): void {
    clearTimeout(this.#timer);
    this.#probe?.destroy();
    this.#probe = undefined;
  }

  #wait(): void {
    this.#end();
    this.#timer = setTimeout(() => this.#queue ? this.#look(this.#queue) : this.#ask(), QUIET_MS);
  }

  // Whatever is taken meanwhile begins the wait anew.
  #look(queue: AcceptQueue): void {
    if (!queue.length) return this.#wait();
    this.#timer = setTimeout(() => {
      this.#wait();
      if (queue.length) this.#onDeaf();
    }, ACCEPT_MS);
  }

  #ask(): void {
    const { hostname, port } = this.#address;
    const probe = this.#probe = net.connect({ host: reachable(hostname), port });
    probe.on("error", (error: NodeJS.ErrnoException) => {
      if (this.#probe !== probe) return;
      this.#wait();
      // Any other failure says nothing of the listener: there may be no descriptor for the connection.
      if (error.code === "ECONNREFUSED") this.#onDeaf();
    });
    this.#timer = setTimeout(() => {
      const isConnected = probe.readyState === "open";
      this.#wait();
      if (isConnected) this.#onDeaf();
    }, ACCEPT_MS);
  }
}

// Every address of a machine is none that one can connect to.
function reachable(hostname: string): string {
  return hostname === "0.0.0.0" ? "127.0.0.1" : hostname === "::" ? "::1" : hostname;
}
