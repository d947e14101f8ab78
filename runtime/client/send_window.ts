// How many messages may be under way: additive increase, multiplicative decrease.

const FIRST = 16;
/** Added when the peer took a whole window at once. */
const STEP = 8;
const MAX = 1024;

/** The most messages in flight, as the peer's flow control allows. */
export class SendWindow {
  #size = FIRST;
  #increases = 0;
  #decreases = 0;

  /** Messages that may be in flight. */
  get size(): number {
    return this.#size;
  }

  get increases(): number {
    return this.#increases;
  }

  get decreases(): number {
    return this.#decreases;
  }

  /** The peer took all that the window held without a wait. */
  grow(): void {
    if (this.#size === MAX) return;
    this.#size = Math.min(this.#size + STEP, MAX);
    this.#increases++;
  }

  /** The peer let a full window wait. */
  shrink(): void {
    if (this.#size === 1) return;
    this.#size = Math.floor(this.#size / 2);
    this.#decreases++;
  }
}
