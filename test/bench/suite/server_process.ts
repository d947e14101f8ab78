// A server under test: a process of its own.
import { ROOT } from "../../harness/server_process.ts";
import { kill, start } from "./children.ts";
import { treeOf } from "./process_tree.ts";

/** How a server is started. */
export interface Command {
  readonly program: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** @default the project's folder */
  readonly cwd?: string;
  /** Where it listens, if it does not print `grpc://HOST:PORT` or `http://HOST:PORT`. */
  readonly port?: number;
}

/** What keeps a server, a row or a tool from running here; the message says what it needs. */
export class Unavailable extends Error {
  override readonly name = "Unavailable";
}

const START_LIMIT_MS = 90_000;
const POLL_MS = 50;
/** Of what a server printed, the end that an error shows. */
const TAIL = 500;

/** A running server. */
export class ServerProcess implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #printed = Promise.withResolvers<string>();
  readonly #outputs: Promise<void>[];
  #tail = "";
  #hasEnded = false;

  private constructor(command: Command) {
    this.#child = start(command.program, {
      args: [...command.args],
      cwd: command.cwd ?? ROOT,
      env: { NO_COLOR: "1", ...command.env },
      detached: true, // a group of its own: ended as one, and not by the terminal's Ctrl-C
    });
    this.#outputs = [this.#follow(this.#child.stdout), this.#follow(this.#child.stderr)];
    this.#child.status.then(({ code, signal }) => {
      this.#hasEnded = true;
      this.#printed.reject(new Error(`It ended with ${signal ?? `status ${code}`}: ${this.#tail}`));
    });
    this.#printed.promise.catch(() => {});
  }

  /** Starts a server and waits until it takes connections. */
  static async start(command: Command): Promise<ServerProcess & { readonly address: string }> {
    const server = new ServerProcess(command);
    try {
      const address = command.port === undefined ? await server.#printedAddress() : `127.0.0.1:${command.port}`;
      await server.#connects(address);
      return Object.assign(server, { address });
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
  }

  get pid(): number {
    return this.#child.pid;
  }

  /** Has it stand still: it takes no processor time until {@linkcode resume}. */
  pause(): void {
    for (const pid of treeOf(this.pid)) Deno.kill(pid, "SIGSTOP");
  }

  /** Has it go on. */
  resume(): void {
    for (const pid of treeOf(this.pid)) Deno.kill(pid, "SIGCONT");
  }

  async #follow(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
    for await (const text of stream.pipeThrough(new TextDecoderStream())) {
      const seen = this.#tail + text;
      const address = /(?:grpc|http):\/\/([\w.]+:\d+)/.exec(seen);
      if (address) this.#printed.resolve(address[1]!);
      this.#tail = seen.slice(-TAIL);
    }
  }

  async #printedAddress(): Promise<string> {
    const timer = setTimeout(
      () => this.#printed.reject(new Error(`It named no address: ${this.#tail}`)),
      START_LIMIT_MS,
    );
    return await this.#printed.promise.finally(() => clearTimeout(timer));
  }

  async #connects(address: string): Promise<void> {
    const [hostname, port] = address.split(":");
    const end = performance.now() + START_LIMIT_MS;
    for (;;) {
      try {
        return (await Deno.connect({ hostname: hostname!, port: Number(port) })).close();
      } catch (error) {
        if (this.#hasEnded || performance.now() > end) {
          throw new Error(`Nothing listens on ${address}: ${this.#tail}`, { cause: error });
        }
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    kill(this.#child);
    await Promise.all([...this.#outputs, this.#child.status]);
  }
}
