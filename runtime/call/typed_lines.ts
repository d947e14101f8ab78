// What a person types at a terminal, line by line, with editing and a history.
import process from "node:process";
import readline from "node:readline";

/** The lines that a person types. While it is open Ctrl-C is a key like others. */
export class TypedLines implements Disposable {
  readonly #interface: readline.Interface;
  readonly #lines: string[] = [];
  #waiting: ((line: string | undefined) => void) | undefined;
  #isClosed = false;

  /** `onInterrupt` is called for Ctrl-C; the prompt goes to stderr. */
  constructor(onInterrupt: () => void) {
    this.#interface = readline.createInterface({ input: process.stdin, output: process.stderr, prompt: "> " });
    this.#interface.on("line", (line) => this.#add(line));
    this.#interface.on("close", () => this.#close());
    this.#interface.on("SIGINT", () => {
      onInterrupt();
      if (!this.#waiting) return;
      // A fresh line, as shells have it.
      this.#interface.write("", { ctrl: true, name: "e" });
      this.#interface.write("", { ctrl: true, name: "u" });
      this.#interface.prompt();
    });
  }

  /** Asks for the next line; undefined when the person has left (Ctrl-D). */
  next(): Promise<string | undefined> {
    const line = this.#lines.shift();
    if (line !== undefined || this.#isClosed) return Promise.resolve(line);
    this.#interface.prompt();
    return new Promise((resolve) => this.#waiting = resolve);
  }

  [Symbol.dispose](): void {
    this.#interface.close();
  }

  #add(line: string): void {
    if (this.#waiting) this.#answer(line);
    else this.#lines.push(line);
  }

  #close(): void {
    this.#isClosed = true;
    this.#answer(undefined);
  }

  #answer(line: string | undefined): void {
    this.#waiting?.(line);
    this.#waiting = undefined;
  }
}
