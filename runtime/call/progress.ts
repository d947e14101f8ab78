// How far a long batch is, on a terminal's last line.

const BAR_CELLS = 20;
const REDRAW_MS = 100;

/** How far a batch is. */
export interface Progress {
  readonly rows: number;
  readonly seconds: number;
  /** 0 to 1; undefined where nobody knows how many there will be. */
  readonly done: number | undefined;
}

/** One line: `[#####...............]  25 %  1200 rows  4800 rows/s`. */
export function formatProgress({ rows, seconds, done }: Progress): string {
  const rate = seconds > 0 ? `  ${Math.round(rows / seconds)} rows/s` : "";
  const count = `${rows} row${rows === 1 ? "" : "s"}${rate}`;
  if (done === undefined) return count;
  const share = Math.min(1, Math.max(0, done));
  const cells = Math.floor(share * BAR_CELLS);
  const bar = "#".repeat(cells).padEnd(BAR_CELLS, ".");
  return `[${bar}] ${`${Math.floor(share * 100)}`.padStart(3)} %  ${count}`;
}

/** Draws a line over itself, at most ten times a second; the first one after a tenth of a second. */
export class ProgressLine {
  readonly #write: (text: string) => void;
  readonly #now: () => number;
  readonly #start: number;
  #drawn: number;
  #isShown = false;

  constructor(write: (text: string) => void, now: () => number = performance.now.bind(performance)) {
    this.#write = write;
    this.#now = now;
    this.#start = this.#drawn = now();
  }

  /** `done` as in {@linkcode Progress}. */
  update(rows: number, done: number | undefined): void {
    const now = this.#now();
    if (now - this.#drawn < REDRAW_MS) return;
    this.#drawn = now;
    this.#isShown = true;
    this.#write(`\r${formatProgress({ rows, seconds: (now - this.#start) / 1000, done })}\x1b[K`);
  }

  /** Leaves an empty line, for what is printed next. */
  clear(): void {
    if (this.#isShown) this.#write("\r\x1b[K");
    this.#isShown = false;
  }
}
