// client.py as a process that takes a command a line.
import { ROOT } from "../../harness/server_process.ts";
import { start } from "./children.ts";

/** What client.py says of a block of calls. */
export interface PythonAnswer {
  /** Milliseconds of each call. */
  readonly ms?: readonly number[];
  readonly tokens?: number;
  /** Milliseconds until the first token of each text. */
  readonly firsts?: readonly number[];
  readonly error?: string;
}

/** A running client. */
export class PythonClient implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #lines: ReadableStreamDefaultReader<string>;
  #read = "";

  constructor(python: string, stubs: string) {
    this.#child = start(python, {
      args: ["-u", `${ROOT}test/bench/client.py`],
      env: { PYTHONPATH: stubs, PYTHONDONTWRITEBYTECODE: "1" },
      stdin: "piped",
      stderr: "null",
    });
    this.#writer = this.#child.stdin.getWriter();
    this.#lines = this.#child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  }

  /**
   * Runs one command.
   *
   * @throws {Error} where a call failed or was answered wrongly
   */
  async do(command: string, args: Readonly<Record<string, string | number | boolean>>): Promise<PythonAnswer> {
    await this.#writer.write(new TextEncoder().encode(`${JSON.stringify({ do: command, ...args })}\n`));
    const answer = JSON.parse(await this.#line()) as PythonAnswer;
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer;
  }

  async #line(): Promise<string> {
    for (;;) {
      const end = this.#read.indexOf("\n");
      if (end >= 0) {
        const line = this.#read.slice(0, end);
        this.#read = this.#read.slice(end + 1);
        return line;
      }
      const { done, value } = await this.#lines.read();
      if (done) throw new Error("The Python client has ended");
      this.#read += value;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writer.close().catch(() => {});
    for (; !(await this.#lines.read()).done;);
    await this.#child.status;
  }
}
