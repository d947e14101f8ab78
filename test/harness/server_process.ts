// Servers as processes of their own, and clients of them.
import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { patchHttp2Close } from "../../runtime/transports/grpc/http2_patch.ts";

/** The project's folder. */
export const ROOT = new URL("../../", import.meta.url).pathname;
/** The command line of `deno` without the command's own arguments. */
export const MAIN: readonly string[] = ["run", "-A", `${ROOT}mod.ts`];
/** The fixtures. */
export const FUNCTIONS: string = `${ROOT}test/testdata/functions`;
const LIMIT_MS = 60_000;

/** What a process prints, line by line. */
export class Output {
  readonly #reader: ReadableStreamDefaultReader<string>;
  #read = "";

  constructor(stream: ReadableStream<Uint8Array<ArrayBuffer>>) {
    this.#reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  }

  /** The next line that fits, which lies behind all that were found before. */
  async find(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const end = this.#read.lastIndexOf("\n") + 1;
      const match = pattern.exec(this.#read.slice(0, end));
      if (match) {
        this.#read = this.#read.slice(match.index + match[0].length);
        return match;
      }
      const { done, value } = await this.#reader.read();
      if (done) throw new Error(`ended before ${pattern}: ${this.#read}`);
      this.#read += value;
    }
  }

  /** What comes until all that could print there have ended. */
  async rest(): Promise<string> {
    for (;;) {
      const { done, value } = await this.#reader.read();
      if (done) return this.#read;
      this.#read += value;
    }
  }
}

/** What a program has left. */
export interface Result {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A Deno program that is killed after a minute, and when it is disposed. */
export class DenoProcess implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #timer: ReturnType<typeof setTimeout>;
  readonly stdout: Output;
  readonly stderr: Output;

  constructor(args: readonly string[], env: Readonly<Record<string, string>> = {}, stdin: "null" | "piped" = "null") {
    this.#child = new Deno.Command(Deno.execPath(), {
      args: [...args],
      cwd: ROOT,
      env: { NO_COLOR: "1", ...env },
      stdin,
      stdout: "piped",
      stderr: "piped",
      detached: true, // a group of its own
    }).spawn();
    this.#timer = setTimeout(() => this.signalGroup("SIGKILL"), LIMIT_MS);
    this.stdout = new Output(this.#child.stdout);
    this.stderr = new Output(this.#child.stderr);
  }

  get pid(): number {
    return this.#child.pid;
  }

  get status(): Promise<Deno.CommandStatus> {
    return this.#child.status;
  }

  /** What is left of it when it has ended. */
  async result(): Promise<Result> {
    const [{ code }, stdout, stderr] = await Promise.all([this.status, this.stdout.rest(), this.stderr.rest()]);
    return { code, stdout, stderr };
  }

  /** Where its stdin is piped. */
  get stdin(): WritableStream<Uint8Array<ArrayBufferLike>> {
    return this.#child.stdin;
  }

  /** The processes that it has started. */
  children(): readonly number[] {
    const text = Deno.readTextFileSync(`/proc/${this.pid}/task/${this.pid}/children`);
    return text.trim().split(" ").filter((pid) => pid !== "").map(Number);
  }

  /** Signals it as a terminal does: with all that it has started. */
  signalGroup(signal: Deno.Signal): void {
    try {
      Deno.kill(-this.pid, signal);
    } catch {
      // Nobody is left.
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.signalGroup("SIGKILL");
    clearTimeout(this.#timer);
    await Promise.all([this.stdout.rest(), this.stderr.rest(), this.status]);
  }
}

/** A folder of functions: their definitions by name. */
export async function functionFolder(
  definitions: Readonly<Record<string, string>>,
): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await Deno.makeTempDir();
  for (const [name, definition] of Object.entries(definitions)) {
    const source = `import { defineModel } from "tensorlet";\nexport default ${definition};\n`;
    await Deno.writeTextFile(`${path}/${name}.ts`, source);
  }
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

/** Where a server listens that prints so; all of its processes are ready. */
export async function portOf(server: DenoProcess): Promise<number> {
  const [, port] = await server.stdout.find(/grpc:\/\/127\.0\.0\.1:(\d+)/);
  await server.stderr.find(/ready/);
  return Number(port);
}

// deno-lint-ignore no-explicit-any
type ModelInference = any;

/** A client of `inference.v1.ModelInference` with a connection of its own. */
export function connect(port: number): ModelInference & Disposable {
  patchHttp2Close();
  const definition = loadSync(`${ROOT}protos/inference/v1/model_inference.proto`, { keepCase: true, defaults: true });
  const { inference } = grpc.loadPackageDefinition(definition) as unknown as {
    inference: { v1: { ModelInference: grpc.ServiceClientConstructor } };
  };
  const client = new inference.v1.ModelInference(`127.0.0.1:${port}`, grpc.credentials.createInsecure(), {
    "grpc.use_local_subchannel_pool": 1,
  });
  return Object.assign(client, { [Symbol.dispose]: () => client.close() });
}
