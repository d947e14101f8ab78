// One inference, whatever brings it: which function answers, with which handler, and what its answers are.
import { isRequestId } from "../../core/request_id.ts";
import type { CallKind, CallParams, ChatCall, PredictCall, Reply, StreamCall } from "../../core/call.ts";
import { type CatalogEntry, findEntry, findNamedEntry } from "../../core/catalog.ts";
import { ModelError } from "../../core/error.ts";
import { type AdapterHost, callBase, invokePredict, metadataParams, type RequestContext } from "../adapter.ts";
import { withTurns } from "../turns.ts";
import { callParams, maxTokensOf } from "./parameters.ts";
import type { InferRequest } from "./request.ts";
import { readSequence, runSequence, type Sequence, wantsSequence } from "./sequence.ts";
import { checkOutputs, type OutputTensor, selectOutputs, toNamedTensors, toOutputs } from "./tensors.ts";
import { hasPrompt, promptParam, textOf, textOutput } from "./text.ts";

/** One answer to a request. */
export interface InferAnswer {
  readonly model: string;
  readonly version: string;
  /** The request's. */
  readonly id: string;
  readonly outputs: readonly OutputTensor[];
  /** It is known that no answer follows. */
  readonly final: boolean;
}

/** How many answers the asker can take. */
export type AnswerMode = "one" | "many";

/** What is to answer a request. */
interface Target {
  readonly entry: CatalogEntry;
  readonly kind: Exclude<CallKind, "batch">;
  readonly sequence: Sequence | undefined;
}

/**
 * The answers to a request. Throws a `ModelError`. A `predict` call ends when the reader asks for more: see
 * `invokePredict`.
 */
export async function* infer(
  host: AdapterHost,
  request: InferRequest,
  context: RequestContext,
  mode: AnswerMode,
): AsyncGenerator<InferAnswer, void, undefined> {
  const target = findTarget(host, request, mode);
  const { entry } = target;
  if (target.kind === "predict") checkOutputs(entry, request.outputs);
  const answer = (outputs: readonly OutputTensor[], final: boolean): InferAnswer => ({
    model: entry.name,
    version: entry.version,
    id: request.id,
    outputs: selectOutputs(entry.name, outputs, request.outputs),
    final,
  });
  if (target.kind === "predict") {
    const call: PredictCall = { ...tensorCall(target, request, context), kind: "predict" };
    for await (const output of invokePredict(host.invoke, call)) yield answer(toOutputs(output), true);
    return;
  }
  const replies = target.kind === "chat"
    ? runSequence(host, chatCall(target, request, context), target.sequence!)
    : host.invoke({ ...tensorCall(target, request, context), kind: "stream" } satisfies StreamCall);
  if (mode === "many") {
    for await (const reply of replies) {
      const outputs = outputsOf(entry, reply);
      if (outputs) yield answer(outputs, "final" in reply && reply.final === true);
    }
    return;
  }
  let text = "";
  for await (const reply of withTurns(replies)) if (reply.type === "delta") text += reply.text;
  yield answer([textOutput(entry, text)], true);
}

// A request of a sequence is a turn of a chat, where the function has one.
function findTarget({ catalog }: AdapterHost, request: InferRequest, mode: AnswerMode): Target {
  const requested = request.version === "" ? request.model : `${request.model}@${request.version}`;
  const sequence = readSequence(request.parameters);
  const kind = mode === "many" ? "stream" : "predict";
  const entry = requested === ""
    ? findEntry(catalog, requested, kind, "model_name")
    : findNamedEntry(catalog, requested);
  const { kinds, name } = entry;
  if (sequence && kinds.includes("chat")) return { entry, kind: "chat", sequence };
  if (kinds.includes(kind)) return { entry, kind, sequence };
  if (kinds.includes("stream")) {
    throw new ModelError(
      "unimplemented",
      `Function "${name}" answers in a stream (its transaction policy is decoupled): use ModelStreamInfer or ` +
        `generate_stream${kinds.includes("chat") ? ", or name a sequence_id to chat" : ""}`,
    );
  }
  throw kinds.includes("chat") ? wantsSequence(name) : new ModelError(
    "unimplemented",
    `Function "${name}" has no ${kind} handler, nor one that can stand in for it`,
  );
}

function base({ entry }: Target, request: InferRequest, context: RequestContext, prompt: CallParams = {}) {
  const params = callParams(request.parameters, entry, metadataParams(context.metadata, entry));
  const id = isRequestId(request.id) ? request.id : context.id;
  return callBase({ ...context, id }, entry, { ...params, ...prompt }, maxTokensOf(request.parameters, entry));
}

function tensorCall(target: Target, request: InferRequest, context: RequestContext): Omit<PredictCall, "kind"> {
  const { entry } = target;
  if (!hasPrompt(entry)) {
    return { ...base(target, request, context), input: toNamedTensors(entry, request.inputs) };
  }
  return { ...base(target, request, context, promptParam(request.inputs)), input: {} };
}

function chatCall(target: Target, request: InferRequest, context: RequestContext): ChatCall {
  return {
    ...base(target, request, context),
    version: request.version === "" ? undefined : request.version,
    kind: "chat",
    sessionId: target.sequence!.id,
    message: { role: "user", content: textOf(request.inputs) },
    session: undefined,
  };
}

function outputsOf(entry: CatalogEntry, reply: Reply): readonly OutputTensor[] | undefined {
  if (reply.type === "delta") return [textOutput(entry, reply.text)];
  return reply.type === "tensors" ? toOutputs(reply.output) : undefined;
}
