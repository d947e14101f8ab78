/**
 * Looks for stop texts in a text that comes in pieces: what may be the start of one is held back until the next piece
 * tells.
 */
export class StopScanner {
  readonly #stops: readonly string[];
  readonly #longest: number;
  #held = "";
  #found = false;

  /** Makes a scanner for stop texts that are not empty. */
  constructor(stops: readonly string[]) {
    this.#stops = stops;
    this.#longest = Math.max(0, ...stops.map((stop) => stop.length));
  }

  /** Whether a stop text has come; nothing leaves after it. */
  get found(): boolean {
    return this.#found;
  }

  /** The text that can leave now: up to the first stop text. */
  push(piece: string): string {
    if (this.#found) return "";
    const text = this.#held + piece;
    const ends = this.#stops.map((stop) => text.indexOf(stop)).filter((at) => at >= 0);
    this.#found = ends.length > 0;
    const end = this.#found ? Math.min(...ends) : text.length - this.#maybe(text);
    this.#held = this.#found ? "" : text.slice(end);
    return text.slice(0, end);
  }

  /** What was held back, once no piece follows. */
  rest(): string {
    return this.#held;
  }

  // How many characters at the end of the text may begin a stop text.
  #maybe(text: string): number {
    for (let length = Math.min(text.length, this.#longest - 1); length > 0; length--) {
      const end = text.slice(-length);
      if (this.#stops.some((stop) => stop.length > length && stop.startsWith(end))) return length;
    }
    return 0;
  }
}
