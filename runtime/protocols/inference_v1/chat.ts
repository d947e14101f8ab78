// ChatStream: a loop over the client's messages that makes one call of each turn.
import { type CatalogEntry, findEntry, splitVersion } from "../../core/catalog.ts";
import { ModelError, quote } from "../../core/error.ts";
import { linkSignals } from "../../core/signal.ts";
import { ChunkSource } from "../../core/stream.ts";
import { type AdapterHost, callBase, type RpcContext, untilDraining } from "../adapter.ts";
import { readParams } from "./request.ts";

interface UserMessage {
  readonly session_id: string;
  readonly content: string;
}

interface AssistantMessage {
  readonly session_id: string;
  readonly content: string;
  readonly finish_reason: boolean;
}

const MAX_SESSION_ID_BYTES = 256;
/** Turns of one stream that run or wait; beyond it the reader stops, so flow control holds the client back. */
const MAX_PENDING_TURNS = 16;

/** `ModelInference/ChatStream`. */
export async function* chatStream(
  host: AdapterHost,
  requests: AsyncIterable<unknown, void, undefined>,
  rpc: RpcContext,
): AsyncGenerator<AssistantMessage, void, undefined> {
  const requested = rpc.metadata.get("model-id") ?? "";
  const entry = findEntry(host.catalog, requested, "chat", `model (metadata "model-id")`);
  const [, version] = splitVersion(requested);
  using linked = linkSignals(rpc.signal);
  const turnRpc = { ...rpc, signal: linked.signal };
  const conversation = new Conversation(host, { entry, version }, turnRpc, (error) => linked.abort(error));
  try {
    conversation.answers.attach(conversation.run(requests));
    yield* conversation.answers;
  } finally {
    linked.abort(new ModelError("cancelled", "The chat stream has ended"));
    conversation.release();
  }
}

/** The function that a stream talks to, and the version that the client named: a session may be with another one. */
interface Partner {
  readonly entry: CatalogEntry;
  readonly version: string | undefined;
}

class Conversation {
  readonly answers: ChunkSource<AssistantMessage>;
  readonly #host: AdapterHost;
  readonly #partner: Partner;
  readonly #rpc: RpcContext;
  /** The last turn of each session: turns of one session are answered in order, those of several side by side. */
  readonly #tails = new Map<string, Promise<void>>();
  readonly #pending = new Set<Promise<void>>();
  /** What lets each session go when this stream ends. */
  readonly #holds = new Map<string, () => void>();
  readonly #fail: (error: unknown) => void;
  #newId: string | undefined;
  #released = false;

  /** `fail` aborts the signal of `rpc`: a turn that fails ends the stream. */
  constructor(host: AdapterHost, partner: Partner, rpc: RpcContext, fail: (error: unknown) => void) {
    this.#host = host;
    this.#partner = partner;
    this.#rpc = rpc;
    this.#fail = fail;
    this.answers = new ChunkSource(rpc.signal);
  }

  /** Reads until the client's half-close; ends when the last turn is answered. */
  async run(requests: AsyncIterable<unknown, void, undefined>): Promise<void> {
    try {
      for await (const message of untilDraining<UserMessage>(requests, this.#rpc)) await this.#receive(message);
    } catch (error) {
      // A shutdown ends an idle chat at once, another after its turns.
      if (error === this.#rpc.draining.reason) await Promise.all(this.#pending);
      throw error;
    }
    await Promise.all(this.#pending);
  }

  /** Lets the sessions go: their idle time begins. */
  release(): void {
    this.#released = true;
    for (const release of this.#holds.values()) release();
    this.#holds.clear();
  }

  async #receive(message: UserMessage): Promise<void> {
    const id = message.session_id || (this.#newId ??= crypto.randomUUID());
    checkSessionId(id);
    if (message.content === "") {
      const holding = this.#holdExisting(id);
      await this.answers.emit({ session_id: id, content: "", finish_reason: false }); // at once, whatever a store does
      return await holding;
    }
    while (this.#pending.size >= MAX_PENDING_TURNS) await Promise.race(this.#pending);
    this.#hold(id);
    const turn = (this.#tails.get(id) ?? Promise.resolve()).then(() => this.#answer(id, message.content));
    this.#tails.set(id, turn);
    this.#pending.add(turn);
    turn.then(() => {
      this.#pending.delete(turn);
      if (this.#tails.get(id) === turn) this.#tails.delete(id);
    }, this.#fail);
  }

  async #answer(id: string, content: string): Promise<void> {
    const { entry, version } = this.#partner;
    const call = {
      ...callBase(this.#rpc, entry, readParams(entry, this.#rpc.metadata).params),
      version,
      kind: "chat",
      sessionId: id,
      message: { role: "user", content },
      session: undefined,
    } as const;
    let finished = false;
    for await (const reply of this.#host.invoke(call)) {
      if (reply.type !== "delta") continue;
      finished = reply.final === true;
      // An empty piece would look like the answer to a heartbeat.
      if (reply.text !== "" || finished) {
        await this.answers.emit({ session_id: id, content: reply.text, finish_reason: finished });
      }
    }
    if (!finished) await this.answers.emit({ session_id: id, content: "", finish_reason: true });
  }

  #hold(id: string): void {
    if (this.#holds.has(id)) return;
    const { entry, version } = this.#partner;
    this.#holds.set(id, this.#host.sessions.hold(entry.name, version, id));
  }

  // A heartbeat holds what exists, and is answered where the store cannot be asked.
  async #holdExisting(id: string): Promise<void> {
    if (this.#holds.has(id)) return;
    const { entry, version } = this.#partner;
    const release = await this.#host.sessions.holdExisting(entry.name, version, id).catch(() => undefined);
    if (!release) return;
    if (this.#released || this.#holds.has(id)) release();
    else this.#holds.set(id, release);
  }
}

function checkSessionId(id: string): void {
  const { length } = new TextEncoder().encode(id);
  if (length <= MAX_SESSION_ID_BYTES) return;
  throw new ModelError(
    "invalid_argument",
    `Cannot accept session_id ${quote(id, 32)}: it takes ${length} bytes, wanted at most ${MAX_SESSION_ID_BYTES}`,
  );
}
