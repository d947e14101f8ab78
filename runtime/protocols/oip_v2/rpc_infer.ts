// ModelInfer: one request, one answer. ModelStreamInfer: many requests, each with any number of answers.
import { ModelError, toModelError } from "../../core/error.ts";
import { linkSignals } from "../../core/signal.ts";
import { ChunkSource } from "../../core/stream.ts";
import { type AdapterHost, onlyRequest, type RpcContext, untilDraining } from "../adapter.ts";
import { join, withField } from "../parts.ts";
import { infer, type InferAnswer } from "./infer.ts";
import { flagOf } from "./parameters.ts";
import { decodeInferRequest, type InferMessage } from "./request.ts";
import { encodeAnswer } from "./response.ts";

const FINAL = "triton_final_response";
const WANTS_EMPTY_FINAL = "triton_enable_empty_final_response";
const GRPC_ERROR = "triton_grpc_error";
/** Requests of one stream that run or wait; beyond it the reader stops, so flow control holds the client back. */
const MAX_PENDING = 64;

/** `ModelInfer`; yields encoded messages. */
export async function* modelInfer(
  host: AdapterHost,
  requests: AsyncIterable<unknown, void, undefined>,
  rpc: RpcContext,
): AsyncGenerator<Uint8Array, void, undefined> {
  const request = decodeInferRequest(await onlyRequest<Uint8Array>(requests));
  for await (const answer of infer(host, request, rpc, "one")) yield join(encodeAnswer(answer, request.typed));
}

/** `ModelStreamInfer`; yields encoded messages. */
export async function* modelStreamInfer(
  host: AdapterHost,
  requests: AsyncIterable<unknown, void, undefined>,
  rpc: RpcContext,
): AsyncGenerator<Uint8Array, void, undefined> {
  using linked = linkSignals(rpc.signal);
  const stream = new InferStream(host, { ...rpc, signal: linked.signal }, (error) => linked.abort(error));
  try {
    stream.responses.attach(stream.run(requests));
    yield* stream.responses;
  } finally {
    linked.abort(new ModelError("cancelled", "The stream of requests has ended"));
  }
}

type RequestNames = Pick<InferMessage, "model" | "version" | "id">;

const NO_NAMES: RequestNames = { model: "", version: "", id: "" };

class InferStream {
  readonly responses: ChunkSource<Uint8Array>;
  readonly #host: AdapterHost;
  readonly #rpc: RpcContext;
  readonly #fail: (error: unknown) => void;
  readonly #pending = new Set<Promise<void>>();
  /** By function: when its last request has begun to answer. Single answers come in the order of their requests. */
  readonly #begun = new Map<string, Promise<void>>();
  /** By sequence: when its last request has been answered. */
  readonly #tails = new Map<string, Promise<void>>();

  /** `fail` aborts the signal of `rpc`. */
  constructor(host: AdapterHost, rpc: RpcContext, fail: (error: unknown) => void) {
    this.#host = host;
    this.#rpc = rpc;
    this.#fail = fail;
    this.responses = new ChunkSource(rpc.signal);
  }

  /** Reads until the client's half-close; ends when the last request is answered. */
  async run(requests: AsyncIterable<unknown, void, undefined>): Promise<void> {
    try {
      for await (const bytes of untilDraining<Uint8Array>(requests, this.#rpc)) {
        while (this.#pending.size >= MAX_PENDING) await Promise.race(this.#pending);
        const request = await this.#decode(bytes);
        if (request) this.#start(request);
      }
    } catch (error) {
      // A shutdown ends an idle stream at once, another after its answers.
      if (error === this.#rpc.draining.reason) await Promise.all(this.#pending);
      throw error;
    }
    await Promise.all(this.#pending);
  }

  async #decode(bytes: Uint8Array): Promise<InferMessage | undefined> {
    try {
      return decodeInferRequest(bytes);
    } catch (thrown) {
      await this.#refuse(NO_NAMES, thrown);
      return undefined;
    }
  }

  #start(request: InferMessage): void {
    const key = `${request.model}\0${request.version}`;
    const sequence = `${key}\0${request.parameters.get("sequence_id") ?? ""}`;
    const before = this.#begun.get(key);
    const begun = Promise.withResolvers<void>();
    this.#begun.set(key, begun.promise);
    const isSequence = request.parameters.has("sequence_id");
    const turn = isSequence ? this.#tails.get(sequence) : undefined;
    const answering = (turn ?? Promise.resolve()).then(() => this.#answer(request, before, begun.resolve));
    if (isSequence) this.#tails.set(sequence, answering);
    this.#pending.add(answering);
    answering.catch(this.#fail).finally(() => {
      begun.resolve();
      this.#pending.delete(answering);
      if (this.#tails.get(sequence) === answering) this.#tails.delete(sequence);
      if (this.#begun.get(key) === begun.promise) this.#begun.delete(key);
    });
  }

  async #answer(request: InferMessage, before: Promise<void> | undefined, begin: () => void): Promise<void> {
    let isFirst = true;
    let last: InferAnswer | undefined;
    try {
      const wantsEmptyFinal = flagOf(request.parameters, WANTS_EMPTY_FINAL);
      for await (const answer of infer(this.#host, request, this.#rpc, "many")) {
        if (isFirst && answer.final) await before;
        begin();
        isFirst = false;
        last = answer;
        await this.#send(answer, request.typed, { [FINAL]: answer.final });
      }
      if (last?.final || !wantsEmptyFinal) return;
      const { model, version } = last ?? request;
      await this.#send({ model, version, id: request.id, outputs: [], final: true }, false, { [FINAL]: true });
    } catch (thrown) {
      await before;
      await this.#refuse(request, thrown);
    }
  }

  // A request that fails is an answer, unless the client wants the status.
  async #refuse(request: RequestNames, thrown: unknown): Promise<void> {
    if (this.#rpc.signal.aborted || this.#rpc.metadata.get(GRPC_ERROR) === "true") throw thrown;
    await this.#sendError(request, toModelError(thrown, this.#rpc.id).message);
  }

  #send(answer: InferAnswer, typed: boolean, flags: Readonly<Record<string, boolean>>): Promise<void> {
    return this.responses.emit(join(withField([], INFER_RESPONSE, encodeAnswer(answer, typed, flags))));
  }

  // With the id, so that the client knows which request failed.
  #sendError({ model, version, id }: RequestNames, message: string): Promise<void> {
    const text = withField([], ERROR_MESSAGE, [new TextEncoder().encode(message.toWellFormed())]);
    const answer = encodeAnswer({ model, version, id, outputs: [], final: true }, false, { [FINAL]: true });
    return this.responses.emit(join(withField(text, INFER_RESPONSE, answer)));
  }
}

const ERROR_MESSAGE = 1, INFER_RESPONSE = 2;
