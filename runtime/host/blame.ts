// Which functions end server processes, and what follows from it. Strikes are forgotten after a while.
import type { Fingerprints, Verdict, Verdicts } from "./control.ts";

const FORGET_MS = 10 * 60_000;
/** Moves a function to a process of its own, where its settings allow it. */
const TO_PROCESS = 2;
/** Marks it failed, where they do not. */
const TO_FAILED = 3;

interface Suspect {
  readonly strikes: readonly number[];
  /** Of the files that were running. */
  readonly fingerprint: string | undefined;
}

/** Counts what ended while a function ran. */
export class Blame {
  readonly #suspects = new Map<string, Suspect>();

  /** A server process ended, or has to be ended, with calls of these functions in it. */
  strike(functions: Iterable<string>, fingerprints: Fingerprints = {}): void {
    for (const name of new Set(functions)) {
      const fingerprint = fingerprints[name];
      const before = this.#suspects.get(name);
      const strikes = before?.fingerprint === fingerprint ? this.#fresh(before?.strikes ?? []) : [];
      this.#suspects.set(name, { strikes: [...strikes, Date.now()], fingerprint });
    }
  }

  /** A function's files have changed: it may be a better one now. */
  forgive(name: string): void {
    this.#suspects.delete(name);
  }

  /** What a new process has to know. */
  verdicts(): Verdicts {
    const verdicts: [string, Verdict][] = [];
    for (const [name, { strikes, fingerprint }] of this.#suspects) {
      const count = this.#fresh(strikes).length;
      if (count === 0) this.#suspects.delete(name);
      if (count < TO_PROCESS) continue;
      verdicts.push([name, {
        isolation: "process",
        ...count >= TO_FAILED && { failed: true },
        ...fingerprint !== undefined && { fingerprint },
        why: `the server's process ended ${count} times within ${FORGET_MS / 60_000} minutes while it ran`,
      }]);
    }
    return Object.fromEntries(verdicts);
  }

  #fresh(strikes: readonly number[]): readonly number[] {
    return strikes.filter((at) => Date.now() - at < FORGET_MS);
  }
}
