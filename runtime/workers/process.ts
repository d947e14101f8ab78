// Instances in child processes: a heap limit, permissions of their own, and an end that nothing can put off. The child
// is not trusted: whatever it sends, only its own calls suffer.
import { timingSafeEqual } from "node:crypto";
import type { ModelDescription } from "../core/define.ts";
import { ModelError } from "../core/error.ts";
import { throwIfAborted, within } from "../core/signal.ts";
import { bootstrapModule } from "./bootstrap.ts";
import { FrameWriter, readFrames, writeAll } from "./frames.ts";
import { type Launch, lostInstance } from "./instance.ts";
import type { FromInstance, ToInstance } from "./messages.ts";
import { describeRemote, type RemoteOptions, type RemotePort, startRemote } from "./remote.ts";
import type { FunctionSource } from "./runner.ts";
import { wrapper } from "./wrapper.ts";

/** The options of {@linkcode processLauncher}. */
export interface ProcessOptions extends RemoteOptions {
  /** The function's file. */
  readonly file: URL;
  readonly version: string | undefined;
  /** What it may do, as flags of `deno run`. */
  readonly flags: readonly string[];
  /**
   * Bound of V8's old generation, in MiB. What lies outside of the heap is not bounded: the bytes of typed arrays,
   * WebAssembly's memories, what native code takes.
   */
  readonly heapMb: number | undefined;
  /** The deno.json that resolves the function's imports. @default Tensorlet's own */
  readonly config?: string;
}

/** Runs a function in processes of its own. */
export function processLauncher(options: ProcessOptions): Launch {
  return async (signal) => {
    throwIfAborted(signal);
    return await startRemote(new ProcessPort(options), options, signal);
  };
}

/** Reads what a function is, in a process that ends then; rejects with what its file throws, or after `timeoutMs`. */
export async function describeInProcess(options: ProcessOptions, timeoutMs: number): Promise<ModelDescription> {
  const port = new ProcessPort(options, true);
  const late = () =>
    port.onGone(new ModelError("unavailable", `Its file took more than ${timeoutMs} ms to be imported`));
  const timer = setTimeout(late, timeoutMs);
  try {
    return await describeRemote(port, options);
  } finally {
    clearTimeout(timer);
  }
}

/** What a process gets to end once it has closed its connection. */
const EXIT_MS = 1_000;
/** What is waited for of its output once it has ended: a process of its own may hold it open. */
const OUTPUT_MS = 500;
/** So much of the end of stderr is kept: V8's last words are about 2 KB. */
const TAIL_CHARACTERS = 8_192;
const TOKEN_BYTES = 32;
/** A Unix socket's path has 104 bytes at least. */
const MAX_DIR_CHARACTERS = 90;
const OWN_CONFIG = import.meta.url.startsWith("file:")
  ? decodeURIComponent(new URL("../../deno.json", import.meta.url).pathname)
  : undefined;

/** The connection to a child process, and its life from start to end. */
class ProcessPort implements RemotePort {
  onMessage: (message: FromInstance) => void = () => {};
  onGone: (why: ModelError) => void = () => {};
  readonly #options: ProcessOptions;
  readonly #child: Deno.ChildProcess;
  readonly #ended: Promise<void>;
  /** What is posted before the child has connected. */
  readonly #early: ToInstance[] = [];
  #writer: FrameWriter | undefined;
  #isTerminated = false;

  constructor(options: ProcessOptions, describeOnly = false) {
    this.#options = options;
    const socket = new ChildSocket();
    try {
      this.#child = spawn(options, socket.path, describeOnly);
    } catch (error) {
      socket.close();
      throw error;
    }
    this.#ended = this.#live(socket);
  }

  post(message: ToInstance): void {
    if (this.#writer) this.#writer.write(message);
    else this.#early.push(message);
  }

  terminate(): Promise<void> {
    this.#isTerminated = true;
    this.#kill();
    return this.#ended;
  }

  async #live(socket: ChildSocket): Promise<void> {
    const output = new Output(this.#child);
    const status = this.#child.status;
    const exited = status.then(() => {});
    let failure: ModelError | undefined;
    try {
      const [conn] = await Promise.all([socket.accept(exited), tell(this.#child.stdin, socket.token)]);
      if (conn) await this.#read(conn);
    } catch (cause) {
      failure = this.#lost("sent a message that cannot be read", cause);
    } finally {
      socket.close();
    }
    if (!failure && !await within(EXIT_MS, exited)) failure = this.#lost("closed its connection");
    if (failure) this.#kill();
    failure ??= await this.#explain(await status, output);
    if (!this.#isTerminated) this.onGone(failure);
    await exited;
    await output.end();
  }

  async #read(conn: Deno.Conn): Promise<void> {
    // Where nothing can be written any more, reading ends too.
    this.#writer = new FrameWriter(conn, false, () => {});
    for (const message of this.#early.splice(0)) this.#writer.write(message);
    // A process that is killed resets its connection: that is an end like any other.
    const source = { read: (into: Uint8Array) => conn.read(into).catch(() => null) };
    await readFrames(source, (message) => {
      if (!this.#isTerminated) this.onMessage(message as FromInstance);
    });
  }

  #kill(): void {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // it has ended already
    }
  }

  async #explain({ code, signal }: Deno.CommandStatus, output: Output): Promise<ModelError> {
    const { name, heapMb } = this.#options;
    // V8 says why before it traps. A function could say and do the same: it would only blame itself.
    if ((signal === "SIGTRAP" || signal === "SIGABRT") && (await output.tail()).includes("JavaScript out of memory")) {
      const limit = heapMb === undefined ? "all the heap that V8 allows" : `${heapMb} MiB of heap (option heapMb)`;
      return new ModelError(
        "resource_exhausted",
        `An instance of function "${name}" ran out of memory: it had ${limit}`,
      );
    }
    return this.#lost(`ended with ${signal ?? `exit code ${code}`}`);
  }

  #lost(how: string, cause?: unknown): ModelError {
    return lostInstance(this.#options.name, how, cause);
  }
}

/** Where a child connects to: only it knows the token that it has to begin with. */
class ChildSocket {
  readonly token: Uint8Array<ArrayBuffer> = crypto.getRandomValues(new Uint8Array(TOKEN_BYTES));
  readonly path: string;
  readonly #dir: string;
  readonly #listener: Deno.UnixListener;
  readonly #conns = new Set<Deno.Conn>();
  #isListening = true;

  constructor() {
    this.#dir = makeDir();
    this.path = `${this.#dir}/socket`;
    try {
      this.#listener = Deno.listen({ transport: "unix", path: this.path });
    } catch (error) {
      Deno.removeSync(this.#dir);
      throw error;
    }
  }

  /** The connection of the one that knows the token, or undefined after `exited`; nobody can connect any more. */
  async accept(exited: Promise<void>): Promise<Deno.Conn | undefined> {
    const found = Promise.withResolvers<Deno.Conn | undefined>();
    exited.then(() => found.resolve(undefined));
    const follow = async () => {
      for await (const conn of this.#listener) {
        this.#conns.add(conn);
        this.#knowsToken(conn).then((known) => known ? found.resolve(conn) : this.#close(conn));
      }
    };
    follow().catch(found.reject);
    let conn: Deno.Conn | undefined;
    try {
      return conn = await found.promise;
    } finally {
      this.#stopListening();
      this.#closeAllBut(conn);
    }
  }

  close(): void {
    this.#stopListening();
    this.#closeAllBut(undefined);
  }

  #closeAllBut(kept: Deno.Conn | undefined): void {
    for (const conn of this.#conns) if (conn !== kept) this.#close(conn);
  }

  #stopListening(): void {
    if (!this.#isListening) return;
    this.#isListening = false;
    this.#listener.close();
    Deno.removeSync(this.#dir, { recursive: true });
  }

  #close(conn: Deno.Conn): void {
    if (this.#conns.delete(conn)) conn.close();
  }

  async #knowsToken(conn: Deno.Conn): Promise<boolean> {
    const said = new Uint8Array(TOKEN_BYTES);
    try {
      for (let length = 0; length < TOKEN_BYTES;) {
        const read = await conn.read(said.subarray(length));
        if (read === null) return false;
        length += read;
      }
    } catch {
      return false;
    }
    return timingSafeEqual(said, this.token);
  }
}

// Only its owner can open what is in it. A socket's path must be short, and no text of a permission flag can hold a comma.
function makeDir(): string {
  const dir = Deno.makeTempDirSync({ prefix: "tensorlet-" });
  if (dir.length <= MAX_DIR_CHARACTERS && /^[\w/.-]+$/.test(dir)) return dir;
  Deno.removeSync(dir);
  return Deno.makeTempDirSync({ dir: "/tmp", prefix: "tensorlet-" });
}

async function tell(stdin: WritableStream<Uint8Array>, token: Uint8Array): Promise<void> {
  const writer = stdin.getWriter();
  try {
    await writer.write(token);
    await writer.close();
  } catch {
    // it has ended: its status says why
  }
}

/** What a child prints goes to our stderr: stdout may be the server's own. */
class Output {
  readonly #readers: readonly ReadableStreamDefaultReader<Uint8Array>[];
  readonly #done: Promise<void>;
  readonly #decoder = new TextDecoder();
  #tail = "";

  constructor({ stdout, stderr }: Deno.ChildProcess) {
    const [out, err] = this.#readers = [stdout.getReader(), stderr.getReader()] as const;
    const keep = (chunk: Uint8Array) => {
      this.#tail = (this.#tail + this.#decoder.decode(chunk, { stream: true })).slice(-TAIL_CHARACTERS);
    };
    this.#done = Promise.all([forward(out, () => {}), forward(err, keep)]).then(() => {});
  }

  /** The last of stderr, after its end. */
  async tail(): Promise<string> {
    await within(OUTPUT_MS, this.#done);
    return this.#tail;
  }

  async end(): Promise<void> {
    if (!await within(OUTPUT_MS, this.#done)) await Promise.all(this.#readers.map((reader) => reader.cancel()));
    await this.#done;
  }
}

async function forward(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  keep: (chunk: Uint8Array) => void,
): Promise<void> {
  for (;;) {
    const { value } = await reader.read().catch(() => ({ value: undefined }));
    if (!value) return;
    keep(value);
    await writeAll(Deno.stderr, value).catch(() => {}); // nobody reads it: the child goes on
  }
}

function spawn(options: ProcessOptions, socketPath: string, describeOnly: boolean): Deno.ChildProcess {
  const { name, version, file, flags, heapMb, config = OWN_CONFIG } = options;
  const source: FunctionSource = { name, version, base: file.href, describeOnly };
  const args = [
    "run",
    ...withSocket(flags, socketPath),
    ...config === undefined ? [] : ["--config", config],
    ...heapMb === undefined ? [] : [`--v8-flags=--max-old-space-size=${heapMb}`],
    bootstrapModule("./process_main.ts", source),
    socketPath,
  ];
  const [command, ...before] = [...tie(), Deno.execPath()];
  return new Deno.Command(command!, {
    args: [...before, ...args],
    clearEnv: true,
    env: environment(flags),
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
    detached: true, // a group of its own: a terminal's Ctrl-C is the server's to answer, who lets calls finish
  }).spawn();
}

// It gives the permission back before the function's file is evaluated.
function withSocket(flags: readonly string[], path: string): string[] {
  const result = [...flags];
  for (const [flag, value] of [["--allow-read", path], ["--allow-write", path], ["--allow-net", `unix:${path}`]]) {
    if (result.includes(flag!)) continue;
    const at = result.findIndex((each) => each.startsWith(`${flag}=`));
    if (at < 0) result.push(`${flag}=${value}`);
    else result[at] += `,${value}`;
  }
  return result;
}

// Deno's own needs, which a function cannot see; the rest only where it was granted.
const NEEDED_VARIABLES = [
  "HOME",
  "PATH",
  "TMPDIR",
  "XDG_CACHE_HOME",
  "LD_LIBRARY_PATH",
  "LANG",
  "TZ",
  "NO_COLOR",
  "DENO_DIR",
  "DENO_CERT",
  "DENO_TLS_CA_STORE",
  "DENO_AUTH_TOKENS",
  "NPM_CONFIG_REGISTRY",
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "NO_PROXY",
];

function environment(flags: readonly string[]): Record<string, string> {
  const flag = flags.find((each) => /^--allow-env(=|$)/.test(each));
  const granted = flag === undefined ? [] : flag.includes("=") ? flag.slice(flag.indexOf("=") + 1).split(",") : ["*"];
  const isPassed = (variable: string) =>
    NEEDED_VARIABLES.includes(variable.toUpperCase()) ||
    granted.some((name) => name.endsWith("*") ? variable.startsWith(name.slice(0, -1)) : variable === name);
  return Object.fromEntries(
    Object.entries({ ...Deno.env.toObject(), DENO_NO_UPDATE_CHECK: "1" })
      .filter(([name]) => isPassed(name) || name === "DENO_NO_UPDATE_CHECK"),
  );
}

// The end of this process ends the child too, were it in an endless loop that cannot see its connection close. Linux
// watches the thread that starts it: that has to be the main one.
function tie(): readonly string[] {
  return wrapper("setpriv", "--pdeathsig", "KILL", "--");
}
