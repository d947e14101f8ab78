// Time under a test's control: Date.now() and timers stand still until the test moves them.

const real = {
  now: Date.now,
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
};

// What setTimeout does with a delay that does not fit: it fires at once.
const MAX_DELAY_MS = 2 ** 31 - 1;

interface Timer {
  readonly at: number;
  readonly action: () => void;
}

/** Resolves when everything that can go on without time passing has done so. */
export function settled(): Promise<void> {
  return new Promise((resolve) => real.setTimeout(resolve, 0));
}

/** Replaces the clock until it is disposed. */
export class FakeClock implements Disposable {
  readonly #timers = new Map<number, Timer>();
  #now = real.now();
  #lastId = 0;

  constructor() {
    Date.now = () => this.#now;
    globalThis.setTimeout = ((action: () => void, delay = 0) => {
      const at = this.#now + (delay > MAX_DELAY_MS ? 0 : delay);
      this.#timers.set(++this.#lastId, { at, action });
      return this.#lastId;
    }) as unknown as typeof setTimeout;
    globalThis.clearTimeout = (id) => void this.#timers.delete(id as number);
  }

  /** Timers that are armed. */
  get armed(): number {
    return this.#timers.size;
  }

  /** Lets `ms` pass: runs every timer that is due, in order. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      await settled();
      const due = [...this.#timers].filter(([, { at }]) => at <= end).sort(([, a], [, b]) => a.at - b.at)[0];
      if (!due) break;
      const [id, { at, action }] = due;
      this.#timers.delete(id);
      this.#now = at;
      action();
    }
    this.#now = end;
  }

  [Symbol.dispose](): void {
    Date.now = real.now;
    globalThis.setTimeout = real.setTimeout;
    globalThis.clearTimeout = real.clearTimeout;
  }
}
