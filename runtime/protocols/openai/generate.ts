// Runs a call and cuts its text: at a stop text, or at the caller's bound.
import type { ChatCall, Reply, StreamCall } from "../../core/call.ts";
import type { AdapterHost } from "../adapter.ts";
import { unsuitedModel } from "./error.ts";
import type { AnswerOptions } from "./options.ts";
import { StopScanner } from "./stop.ts";

/** Why an answer ended. */
export type FinishReason = "stop" | "length";

/** A part of an answer. */
export interface Piece {
  readonly text: string;
  /** Of the last piece only, which has no text. */
  readonly finish: FinishReason | null;
  /** The function's pieces so far, those that were cut off included. */
  readonly tokens: number;
}

/** The pieces of the answer as they come; the function is ended as soon as there is nothing more to be said. */
export async function* generate(
  host: AdapterHost,
  call: StreamCall | ChatCall,
  { stop, maxTokens = Infinity, limit = Infinity }: Pick<AnswerOptions, "stop" | "maxTokens" | "limit">,
): AsyncGenerator<Piece, void, undefined> {
  const scanner = new StopScanner(stop);
  let tokens = 0;
  for await (const reply of host.invoke(call)) {
    const text = textOf(reply);
    if (text === undefined) continue;
    const isFinal = reply.type === "delta" && reply.final === true;
    if (text !== "" || !isFinal) tokens++; // an empty last piece only says that it is the last
    const sent = scanner.push(text);
    if (sent !== "") yield { text: sent, finish: null, tokens };
    if (scanner.found) break;
    if (tokens >= maxTokens && !isFinal) break;
  }
  const rest = scanner.rest();
  if (rest !== "") yield { text: rest, finish: null, tokens };
  yield { text: "", finish: !scanner.found && tokens >= limit ? "length" : "stop", tokens };
}

function textOf(reply: Reply): string | undefined {
  if (reply.type === "delta") return reply.text;
  if (reply.type !== "tensors") return undefined;
  const tensors = Object.values(reply.output);
  const [only] = tensors;
  if (tensors.length === 1 && only!.dtype === "string" && only!.data.length === 1) return only!.data[0]!;
  throw unsuitedModel("Cannot send tensors as text: the function answered with something else than one string");
}
