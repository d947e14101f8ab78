// Finds peers that are gone without a word: a network that is cut, or a machine that loses power, sends no FIN.
import { atDeadline } from "../../core/signal.ts";

/** When a silent peer counts as gone. */
export interface KeepaliveTimes {
  /** How long a peer may be silent before it is pinged, in milliseconds; Infinity = for ever. */
  readonly keepaliveMs: number;
  /** How long it may then take to send anything at all, in milliseconds. */
  readonly keepaliveTimeoutMs: number;
}

/** A dead peer is found within their sum: less than a minute. */
export const DEFAULT_KEEPALIVE: KeepaliveTimes = { keepaliveMs: 30_000, keepaliveTimeoutMs: 20_000 };

/** The options of {@linkcode Keepalive}. */
export interface KeepaliveOptions extends KeepaliveTimes {
  /** Asks the peer for a sign of life. */
  readonly ping: () => void;
  /** Called once, when there was none. */
  readonly onDead: () => void;
}

/** A timer that is this late tells of an event loop that was held, which has not read what has come meanwhile. */
const LATE_MS = 1000;

/** Watches one connection, until `stop`. */
export class Keepalive {
  readonly #options: KeepaliveOptions;
  #heardAt = Date.now();
  #isAsking = false;
  #disarm: () => void = () => {};

  constructor(options: KeepaliveOptions) {
    this.#options = options;
    this.#listen();
  }

  /** The peer has sent something. Whatever it is, it lives: its answer to a ping may wait behind a long upload. */
  heard(): void {
    this.#heardAt = Date.now();
    if (!this.#isAsking) return;
    this.#disarm();
    this.#listen();
  }

  /** The connection is closed. */
  stop(): void {
    this.#isAsking = false;
    this.#disarm();
  }

  #listen(): void {
    this.#isAsking = false;
    const silentAt = () => this.#heardAt + this.#options.keepaliveMs;
    this.#disarm = atDeadline(silentAt(), () => silentAt() > Date.now() ? this.#listen() : this.#ask());
  }

  #ask(): void {
    this.#isAsking = true;
    const deadAt = Date.now() + this.#options.keepaliveTimeoutMs;
    this.#disarm = atDeadline(deadAt, () => Date.now() > deadAt + LATE_MS ? this.#ask() : this.#options.onDead());
    this.#options.ping();
  }
}
