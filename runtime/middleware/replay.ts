// Streams that survive their reader: the chunks of a call that has an id of its caller's are kept for a while, and a
// reader that was cut off comes back for the rest. The function runs once, apart from whoever reads.
import type { Interceptor, Invoke, Reply, StreamCall } from "../core/call.ts";
import { ModelError, quote, toModelError } from "../core/error.ts";
import type { Logger } from "../core/log.ts";
import { abortable, shuttingDown, throwIfAborted } from "../core/signal.ts";
import { byteLengthOf } from "../core/tensor.ts";

/** Bounds of what is kept; every one is an option of a server. */
export interface ReplayLimits {
  /** How long a call goes on without a reader before it is aborted, in milliseconds. @default {10_000} */
  readonly resumeWindowMs: number;
  /** How long the chunks of a call that has ended are kept, in milliseconds. @default {60_000} */
  readonly replayKeepMs: number;
  /** The newest chunks that are kept of a call. @default {4096} */
  readonly replayMaxTokens: number;
  /** What they may take, in bytes. @default {1_048_576} */
  readonly replayMaxBytes: number;
  /** What the chunks of all calls may take, in bytes. @default {67_108_864} */
  readonly replayMaxTotalBytes: number;
}

/** The default bounds. */
export const DEFAULT_REPLAY_LIMITS: ReplayLimits = {
  resumeWindowMs: 10_000,
  replayKeepMs: 60_000,
  replayMaxTokens: 4096,
  replayMaxBytes: 1024 * 1024,
  replayMaxTotalBytes: 64 * 1024 * 1024,
};

/** What is kept elsewhere: by the other processes of a server. */
export interface OtherReplays {
  /** The replies of a call from an index on; undefined where nobody keeps it. */
  find(key: string, from: number, signal: AbortSignal): Promise<AsyncIterable<Reply, void, undefined> | undefined>;
}

/** The options of {@linkcode Replays}. */
export interface ReplaysOptions extends ReplayLimits {
  /** Ends a reader at its own deadline; the call that it reads has one of its own. */
  readonly deadline: Interceptor;
  /** Asked for what is not kept here. */
  readonly others?: OtherReplays | undefined;
  readonly log: Logger;
}

/** Chunks that a call may be ahead of its reader: a slow reader slows the function. */
const AHEAD = 16;
/** What a chunk takes besides its text or tensors, about. */
const CHUNK_BYTES = 200;

/** The calls whose chunks are kept. */
export class Replays {
  readonly #options: ReplaysOptions;
  /** By function and id; oldest first. */
  readonly #runs = new Map<string, KeptRun>();
  /** What all of them take. */
  readonly #total: Total = { bytes: 0 };

  constructor(options: ReplaysOptions) {
    this.#options = options;
  }

  /** Calls that are kept. */
  get size(): number {
    return this.#runs.size;
  }

  /** What their chunks take, in bytes. */
  get bytes(): number {
    return this.#total.bytes;
  }

  /** The interceptor that runs resumable calls apart from their readers, and lets readers come back. */
  get interceptor(): Interceptor {
    return (next) => {
      const read = this.#options.deadline((call) => this.#read(next, call as StreamCall));
      return (call) =>
        call.kind === "stream" && (call.resumable || call.resumeFrom !== undefined) ? read(call) : next(call);
    };
  }

  /** Aborts what runs without a reader, and forgets everything. */
  close(): void {
    for (const [key, run] of this.#runs) {
      run.abort(shuttingDown());
      this.#forget(key, run);
    }
  }

  /** The replies of a call from an index on, for a reader of another process; undefined where it is not kept here. */
  open(key: string, from: number, signal: AbortSignal): AsyncIterable<Reply, void, undefined> | undefined {
    const run = this.#runs.get(key);
    return run && this.#follow(() => run, from, signal);
  }

  #read(next: Invoke, call: StreamCall): AsyncIterable<Reply, void, undefined> {
    const key = `${call.model}\0${call.id}`;
    if (call.resumeFrom !== undefined) return this.#resume(call, key, call.resumeFrom);
    return this.#follow(() => this.#start(next, call, key), 0, call.signal);
  }

  async *#resume(call: StreamCall, key: string, from: number): AsyncIterable<Reply, void, undefined> {
    const there = this.#runs.has(key) ? undefined : await this.#options.others?.find(key, from, call.signal);
    yield* there ?? this.#follow(() => this.#find(call, key), from, call.signal);
  }

  async *#follow(runOf: () => KeptRun, from: number, signal: AbortSignal): AsyncIterable<Reply, void, undefined> {
    const run = runOf();
    const reader = run.attach(from);
    try {
      for (;;) {
        throwIfAborted(signal);
        const reply = run.take(reader);
        if (reply) yield reply;
        else if (run.hasEnded) return;
        else await abortable(run.changed, signal);
      }
    } finally {
      run.detach(reader);
    }
  }

  #start(next: Invoke, call: StreamCall, key: string): KeptRun {
    if (this.#runs.has(key)) {
      throw new ModelError(
        "already_exists",
        `Cannot start request ${
          quote(call.id)
        }: it is kept already; send params["resume_from"] to go on reading it, or another request-id`,
      );
    }
    const run: KeptRun = new KeptRun({
      ...this.#options,
      id: call.id,
      total: this.#total,
      makeRoom: () => this.#makeRoom(),
      onExpired: () => this.#forget(key, run),
    });
    this.#runs.set(key, run);
    const { resumable: _, ...own } = call;
    run.follow(() => next({ ...own, signal: run.signal }));
    return run;
  }

  #find(call: StreamCall, key: string): KeptRun {
    const run = this.#runs.get(key);
    if (run) return run;
    throw new ModelError(
      "not_found",
      `Cannot resume request ${quote(call.id)} of function ${
        quote(call.model)
      }: nothing is kept of it (it was never sent, or has expired)`,
    );
  }

  // What has ended goes first, the oldest before the others; then what readers have had of the rest.
  #makeRoom(): void {
    const isFull = () => this.#total.bytes > this.#options.replayMaxTotalBytes;
    for (const [key, run] of this.#runs) if (isFull() && run.isIdle) this.#forget(key, run);
    for (const run of this.#runs.values()) if (isFull()) run.dropTaken();
  }

  #forget(key: string, run: KeptRun): void {
    run.clear();
    if (this.#runs.get(key) === run) this.#runs.delete(key);
  }
}

interface Total {
  bytes: number;
}

interface KeptRunOptions extends ReplayLimits {
  readonly id: string;
  readonly total: Total;
  readonly makeRoom: () => void;
  /** Nobody can come back for it any more. */
  readonly onExpired: () => void;
  readonly log: Logger;
}

interface Chunk {
  readonly reply: Reply;
  readonly bytes: number;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** Tells readers apart. */
type Reader = symbol;

/** One call, its newest chunks and its reader, if it has one now. */
class KeptRun {
  readonly #options: KeptRunOptions;
  readonly #controller = new AbortController();
  readonly #chunks: Chunk[] = [];
  /** The index of the first chunk that is kept. */
  #first = 0;
  /** The index of the chunk that the reader gets next. */
  #next = 0;
  #bytes = 0;
  /** What the reader has not had yet. */
  #aheadBytes = 0;
  #isForgotten = false;
  #reader: Reader | undefined;
  #hasEnded = false;
  #failure: ModelError | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #change = Promise.withResolvers<void>();

  constructor(options: KeptRunOptions) {
    this.#options = options;
  }

  /** Of the call. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Resolves at the next change. */
  get changed(): Promise<void> {
    return this.#change.promise;
  }

  /** Whether the call has ended, well or not. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Whether it has ended and nobody reads it. */
  get isIdle(): boolean {
    return this.#hasEnded && this.#reader === undefined;
  }

  /** Keeps the replies as they come, at the reader's pace. */
  async follow(invoke: () => AsyncIterable<Reply, void, undefined>): Promise<void> {
    try {
      for await (const reply of invoke()) {
        this.#push(reply);
        while (!this.#mayGoOn()) await this.changed;
        if (this.signal.aborted) break;
      }
      throwIfAborted(this.signal);
    } catch (thrown) {
      this.#failure = toModelError(thrown, this.#options.id);
      if (!this.#reader) this.#logFailure(this.#failure);
    }
    this.#hasEnded = true;
    if (this.#end === 0 && this.#failure) this.#options.onExpired(); // it may be sent again
    this.#rest();
    this.#notify();
  }

  abort(reason: ModelError): void {
    this.#controller.abort(reason);
    this.#notify();
  }

  /** Gives the chunks from `from` on to a new reader; one that reads already is sent away. */
  attach(from: number): Reader {
    const { id } = this.#options;
    if (from < this.#first) {
      throw new ModelError(
        "out_of_range",
        `Cannot resume request ${quote(id)} from token ${from}: it can still be had from token ${this.#first} on`,
      );
    }
    if (from > this.#end) {
      throw new ModelError(
        "out_of_range",
        `Cannot resume request ${
          quote(id)
        } from token ${from}: it has ${this.#end} so far, the next is token ${this.#end}`,
      );
    }
    const reader = this.#reader = Symbol();
    this.#next = from;
    this.#aheadBytes = this.#chunks.slice(from - this.#first).reduce((sum, { bytes }) => sum + bytes, 0);
    this.#rest();
    this.#notify();
    return reader;
  }

  detach(reader: Reader): void {
    if (this.#reader !== reader) return;
    this.#reader = undefined;
    this.#rest();
    this.#notify();
  }

  /** The reader's next chunk, where it is there; throws the call's failure behind the last one. */
  take(reader: Reader): Reply | undefined {
    if (this.#reader !== reader) {
      throw new ModelError("aborted", `Request ${quote(this.#options.id)} was resumed by another reader`);
    }
    const chunk = this.#chunks[this.#next - this.#first];
    if (!chunk) {
      if (this.#failure) throw this.#failure;
      return undefined;
    }
    this.#next++;
    this.#aheadBytes -= chunk.bytes;
    this.#notify();
    return chunk.reply;
  }

  /** Forgets the chunks that the reader has had. */
  dropTaken(): void {
    while (this.#first < this.#next) this.#drop();
  }

  /** Nobody can come back for it any more; the reader that it has goes on. */
  clear(): void {
    clearTimeout(this.#timer);
    this.#options.total.bytes -= this.#bytes;
    this.#bytes = 0;
    this.#isForgotten = true;
  }

  // One behind the last chunk.
  get #end(): number {
    return this.#first + this.#chunks.length;
  }

  #push(reply: Reply): void {
    const bytes = CHUNK_BYTES + sizeOf(reply);
    this.#chunks.push({ reply, bytes, at: Date.now() });
    this.#count(bytes);
    this.#aheadBytes += bytes;
    const { replayMaxTokens, replayMaxBytes, replayMaxTotalBytes, replayKeepMs, total } = this.#options;
    if (total.bytes > replayMaxTotalBytes) this.#options.makeRoom();
    const oldest = Date.now() - replayKeepMs;
    const isTooMuch = () =>
      this.#chunks.length > replayMaxTokens || this.#bytes > replayMaxBytes || this.#chunks[0]!.at < oldest;
    while (this.#first < this.#next && isTooMuch()) this.#drop();
    this.#notify();
  }

  #drop(): void {
    this.#count(-this.#chunks.shift()!.bytes);
    this.#first++;
  }

  #count(bytes: number): void {
    if (this.#isForgotten) return;
    this.#bytes += bytes;
    this.#options.total.bytes += bytes;
  }

  // Without a reader the call may fill half of what is kept; the other half stays for what its reader may have missed.
  #mayGoOn(): boolean {
    if (this.signal.aborted) return true; // to its end
    const { replayMaxTokens, replayMaxBytes, replayMaxTotalBytes, total } = this.#options;
    const ahead = this.#end - this.#next;
    if (ahead === 0) return true;
    if (total.bytes > replayMaxTotalBytes || this.#aheadBytes >= replayMaxBytes / 2) return false;
    return ahead < (this.#reader ? AHEAD : replayMaxTokens / 2);
  }

  // Starts or stops the time that it has without a reader.
  #rest(): void {
    clearTimeout(this.#timer);
    if (this.#reader || this.#isForgotten) return;
    const { resumeWindowMs, replayKeepMs, onExpired } = this.#options;
    this.#timer = setTimeout(() => {
      if (!this.#hasEnded) this.abort(noReader(resumeWindowMs));
      onExpired();
    }, this.#hasEnded ? replayKeepMs : resumeWindowMs);
  }

  // Where nobody reads, nobody else logs it.
  #logFailure({ code, message, cause }: ModelError): void {
    if (code === "internal") this.#options.log.error(message, { requestId: this.#options.id, code, cause });
  }

  #notify(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }
}

function noReader(ms: number): ModelError {
  return new ModelError("cancelled", `The client left and did not come back within ${ms} ms (option resumeWindowMs)`);
}

function sizeOf(reply: Reply): number {
  if (reply.type === "delta") return reply.text.length;
  return reply.type === "tensors" ? byteLengthOf(reply.output) : 0;
}
