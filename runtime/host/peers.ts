// The line between the processes of a server: a reader that comes back for a token stream may come to another process
// than the one that keeps it, and is read to from there; who asks for metrics is to get those of all. Each process has a
// Unix socket in a folder that they share.
import type { Reply } from "../core/call.ts";
import { ModelError, toModelError } from "../core/error.ts";
import { throwIfAborted, within } from "../core/signal.ts";
import type { Logger } from "../core/log.ts";
import type { ProcessMetrics } from "../core/metrics.ts";
import type { OtherMetrics } from "../middleware/metrics.ts";
import type { OtherReplays } from "../middleware/replay.ts";
import { encodeFrame, framesOf, writeAll } from "../workers/frames.ts";
import { fromErrorData, type FromInstance, toErrorData } from "../workers/messages.ts";

/** What a process has to offer the others: the replies of a call from an index on, where it keeps them. */
type Open = (key: string, from: number, signal: AbortSignal) => AsyncIterable<Reply, void, undefined> | undefined;

/** What a process answers the others. */
export interface Offer {
  readonly open: Open;
  readonly metrics: () => ProcessMetrics;
}

type Question = { readonly key: string; readonly from: number } | { readonly metrics: true };

/** What another process gets to say whether it keeps a call. */
const FOUND_MS = 2_000;
/** And to send its metrics: whoever scrapes waits for them. */
const METRICS_MS = 1_000;
const MAX_QUESTION_BYTES = 64 * 1024;

type Replies = AsyncIterable<Reply, void, undefined>;

/** A process that keeps a call, and begins to send it. */
interface Found {
  readonly frames: AsyncIterator<FromInstance, void>;
  readonly close: () => void;
}

/** The other processes of a server. */
export class Peers implements OtherReplays, Disposable {
  readonly #folder: string;
  readonly #own: string;
  #listener: Deno.UnixListener | undefined;

  /** `folder`: where the processes of the server, and nobody else, have their sockets. */
  constructor(folder: string) {
    this.#folder = folder;
    this.#own = `${Deno.pid}.sock`;
  }

  /** Answers the others from now on; where it cannot, they find nothing here. */
  listen(offer: Offer, log: Logger): void {
    const path = `${this.#folder}/${this.#own}`;
    try {
      Deno.removeSync(path); // of a process that was killed, and had our id
    } catch {
      // There was none.
    }
    try {
      this.#listener = Deno.listen({ transport: "unix", path });
      answerAll(this.#listener, offer);
    } catch (cause) {
      log.warn("Streams that this process keeps can only be resumed here, nor are its metrics elsewhere", { cause });
    }
  }

  async find(key: string, from: number, signal: AbortSignal): Promise<Replies | undefined> {
    const asked = this.#others().map((path) => ask(path, key, from));
    const found = await Promise.any(asked.map(async (each) => await each ?? Promise.reject())).catch(() => undefined);
    for (const each of asked) each.then((other) => void (other !== found && other?.close()));
    return found && repliesOf(found, signal);
  }

  /** The metrics of the others. */
  async metrics(): Promise<OtherMetrics> {
    const answers = await Promise.all(this.#others().map(askMetrics));
    const living = answers.filter((answer) => answer !== "dead");
    const answered = living.filter((answer) => answer !== "silent");
    return { answered, silent: living.length - answered.length };
  }

  #others(): readonly string[] {
    try {
      const names = [...Deno.readDirSync(this.#folder)].map(({ name }) => name);
      return names.filter((name) => name.endsWith(".sock") && name !== this.#own).map((name) =>
        `${this.#folder}/${name}`
      );
    } catch {
      return []; // somebody has removed the folder
    }
  }

  /** The others find nothing here any more; what they read goes on. */
  [Symbol.dispose](): void {
    this.#listener?.close();
  }
}

// Undefined where it does not keep the call, or has died.
async function ask(path: string, key: string, from: number): Promise<Found | undefined> {
  const connection = await Deno.connect({ transport: "unix", path }).catch(() => undefined);
  if (!connection) return undefined;
  const close = onceClosing(connection);
  const frames = framesOf(connection) as AsyncIterator<FromInstance, void>;
  const answered = put(connection, { key, from }).then(() => frames.next()).then(({ done }) => !done, () => false);
  if (await within(FOUND_MS, answered) && await answered) return { frames, close };
  close();
  return undefined;
}

async function askMetrics(path: string): Promise<ProcessMetrics | "silent" | "dead"> {
  const connection = await Deno.connect({ transport: "unix", path }).catch(() => undefined);
  if (!connection) return "dead"; // it was killed, or has left since
  const close = onceClosing(connection);
  let answer: ProcessMetrics | "silent" = "silent";
  const answered = put(connection, { metrics: true })
    .then(() => readAll(connection))
    .then((text) => answer = JSON.parse(text));
  await within(METRICS_MS, answered.catch(() => {}));
  close();
  return answer;
}

async function put(connection: Deno.UnixConn, question: Question): Promise<void> {
  await writeAll(connection, new TextEncoder().encode(`${JSON.stringify(question)}\n`));
}

async function* repliesOf({ frames, close }: Found, signal: AbortSignal): Replies {
  signal.addEventListener("abort", close, { once: true });
  try {
    for (;;) {
      const { value: message } = await frames.next().catch(() => ({ value: undefined }));
      throwIfAborted(signal);
      if (!message) throw new ModelError("unavailable", "The process that ran the stream has ended");
      if (message.type === "reply") yield message.reply as Reply;
      if (message.type !== "end") continue;
      if (message.error) throw fromErrorData(message.error);
      return;
    }
  } finally {
    signal.removeEventListener("abort", close);
    close();
  }
}

async function answerAll(listener: Deno.UnixListener, offer: Offer): Promise<void> {
  for await (const connection of listener) {
    answer(connection, offer).catch(() => {}); // whoever asked has left
  }
}

async function answer(connection: Deno.UnixConn, { open, metrics }: Offer): Promise<void> {
  const close = onceClosing(connection);
  const left = new AbortController();
  const post = async (message: FromInstance) => {
    for (const piece of encodeFrame(message, { copies: false })) await writeAll(connection, piece);
  };
  try {
    const question: Question = JSON.parse(await readLine(connection));
    if ("metrics" in question) {
      return await writeAll(connection, new TextEncoder().encode(JSON.stringify(metrics())));
    }
    const replies = open(question.key, question.from, left.signal);
    if (!replies) return;
    // It says nothing more: what comes is its end.
    connection.read(new Uint8Array(1)).catch(() => {}).then(() => left.abort());
    await post({ type: "done", id: 0 });
    try {
      for await (const reply of replies) {
        if (reply.type !== "failure") await post({ type: "reply", id: 0, reply, end: false });
      }
      await post({ type: "end", id: 0, settled: true });
    } catch (error) {
      await post({ type: "end", id: 0, settled: true, error: toErrorData(toModelError(error, question.key)) });
    }
  } finally {
    close();
  }
}

async function readLine(connection: Deno.UnixConn): Promise<string> {
  const bytes = new Uint8Array(MAX_QUESTION_BYTES);
  for (let length = 0; length < bytes.length;) {
    const read = await connection.read(bytes.subarray(length));
    if (read === null) break;
    length += read;
    if (bytes[length - 1] === 10) return new TextDecoder().decode(bytes.subarray(0, length));
  }
  throw new RangeError("Cannot read a question without an end");
}

async function readAll(connection: Deno.UnixConn): Promise<string> {
  const bytes = new Uint8Array(64 * 1024);
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const read = await connection.read(bytes);
    if (read === null) return text;
    text += decoder.decode(bytes.subarray(0, read), { stream: true });
  }
}

function onceClosing(connection: Deno.UnixConn): () => void {
  let isClosed = false;
  return () => {
    if (!isClosed) connection.close();
    isClosed = true;
  };
}
