// What a server's processes must not do all at once: each begins when the one before it is done.

/** Gives turns in the order in which they were asked for. */
export class Turns {
  readonly #waiting: (() => void)[] = [];
  #isTaken = false;

  /**
   * Calls `begin` when it is its turn, at once where nobody has one. The function that `begin` gets, and that is returned,
   * ends the turn, or gives it up where it has not come yet.
   */
  take(begin: (leave: () => void) => void): () => void {
    let hasLeft = false;
    const start = () => {
      this.#isTaken = true;
      begin(leave);
    };
    const leave = () => {
      if (hasLeft) return;
      hasLeft = true;
      const place = this.#waiting.indexOf(start);
      if (place >= 0) this.#waiting.splice(place, 1);
      else this.#next();
    };
    if (this.#isTaken) this.#waiting.push(start);
    else start();
    return leave;
  }

  #next(): void {
    this.#isTaken = false;
    this.#waiting.shift()?.();
  }
}
