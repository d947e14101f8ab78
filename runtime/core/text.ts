/**
 * Joins surrogate pairs that a handler's pieces cut in two, so that each piece is valid Unicode: half a pair waits
 * for the next piece; one that never finds its other half becomes U+FFFD.
 */
export class PieceJoiner {
  #half = "";

  /** The text that can leave now; `last` = no piece follows. */
  push(piece: string, last: boolean): string {
    const text = this.#half + piece;
    const endsInHalf = !last && /[\ud800-\udbff]$/.test(text);
    this.#half = endsInHalf ? text.slice(-1) : "";
    return (endsInHalf ? text.slice(0, -1) : text).toWellFormed();
  }

  /** What is left at the end. */
  rest(): string {
    return this.#half.toWellFormed();
  }
}
