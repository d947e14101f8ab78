// Finds a process that runs but does nothing: one that was stopped, or whose event loop never turns again.

/** Between two questions, in milliseconds. */
const BEAT_MS = 5_000;
/** Questions in a row that may go without an answer: a minute, in which a machine under load answers one of them. */
const MAX_MISSED = 12;

/** Asks a process again and again whether it is there. */
export class Heartbeat {
  readonly #ask: () => void;
  readonly #onDead: () => void;
  #missed = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Begins at once; `onDead` is called once, when nothing is heard any more. */
  constructor(ask: () => void, onDead: () => void) {
    this.#ask = ask;
    this.#onDead = onDead;
    this.#beat();
  }

  /** The process has said something. */
  heard(): void {
    this.#missed = 0;
  }

  /** The process has ended. */
  stop(): void {
    clearTimeout(this.#timer);
  }

  // Counts questions and not time: while this machine sleeps nobody misses an answer.
  #beat(): void {
    this.#timer = setTimeout(() => {
      if (this.#missed === MAX_MISSED) return this.#onDead();
      this.#missed++;
      this.#ask();
      this.#beat();
    }, BEAT_MS);
  }
}
