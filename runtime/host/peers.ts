// The line between the processes of a server: a reader that comes back for a token stream may come to another process
// than the one that keeps it, and is read to from there. Each process has a Unix socket in a folder that they share.
import type { Reply } from "../core/call.ts";
import { ModelError, toModelError } from "../core/error.ts";
import { throwIfAborted, within } from "../core/signal.ts";
import type { Logger } from "../core/log.ts";
import type { OtherReplays } from "../middleware/replay.ts";
import { encodeFrame, framesOf, writeAll } from "../workers/frames.ts";
import { fromErrorData, type FromInstance, toErrorData } from "../workers/messages.ts";

/** What a process has to offer the others: the replies of a call from an index on, where it keeps them. */
type Open = (key: string, from: number, signal: AbortSignal) => AsyncIterable<Reply, void, undefined> | undefined;

/** What another process gets to say whether it keeps a call. */
const FOUND_MS = 2_000;
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
  listen(open: Open, log: Logger): void {
    const path = `${this.#folder}/${this.#own}`;
    try {
      Deno.removeSync(path); // of a process that was killed, and had our id
    } catch {
      // There was none.
    }
    try {
      this.#listener = Deno.listen({ transport: "unix", path });
      answerAll(this.#listener, open);
    } catch (cause) {
      log.warn("Streams that this process keeps can only be resumed here", { cause });
    }
  }

  async find(key: string, from: number, signal: AbortSignal): Promise<Replies | undefined> {
    const asked = this.#others().map((path) => ask(path, key, from));
    const found = await Promise.any(asked.map(async (each) => await each ?? Promise.reject())).catch(() => undefined);
    for (const each of asked) each.then((other) => void (other !== found && other?.close()));
    return found && repliesOf(found, signal);
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
  const question = new TextEncoder().encode(`${JSON.stringify({ key, from })}\n`);
  const answered = writeAll(connection, question).then(() => frames.next()).then(({ done }) => !done, () => false);
  if (await within(FOUND_MS, answered) && await answered) return { frames, close };
  close();
  return undefined;
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

async function answerAll(listener: Deno.UnixListener, open: Open): Promise<void> {
  for await (const connection of listener) {
    answer(connection, open).catch(() => {}); // whoever asked has left
  }
}

async function answer(connection: Deno.UnixConn, open: Open): Promise<void> {
  const close = onceClosing(connection);
  const left = new AbortController();
  const post = async (message: FromInstance) => {
    for (const piece of encodeFrame(message, { copies: false })) await writeAll(connection, piece);
  };
  try {
    const { key, from } = JSON.parse(await readLine(connection));
    const replies = open(key, from, left.signal);
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
      await post({ type: "end", id: 0, settled: true, error: toErrorData(toModelError(error, key)) });
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

function onceClosing(connection: Deno.UnixConn): () => void {
  let isClosed = false;
  return () => {
    if (!isClosed) connection.close();
    isClosed = true;
  };
}
