// An answer as one JSON body, or as events that end with `[DONE]`.
import { type ModelError, toModelError } from "../../core/error.ts";
import type { HttpContext } from "../adapter.ts";
import { eventStream, started } from "../http.ts";
import { withTurns } from "../turns.ts";
import { badField, errorBody } from "./error.ts";
import type { FinishReason, Piece } from "./generate.ts";
import type { AnswerOptions } from "./options.ts";

/** What an endpoint's answers look like; each is a choice of the answer. */
export interface AnswerForm {
  /** What ids begin with. */
  readonly idPrefix: string;
  /** `object` of a whole answer. */
  readonly object: string;
  /** `object` of an event. */
  readonly chunkObject: string;
  /** A whole answer. */
  whole(text: string): object;
  /** What an event says before the first text. */
  readonly opening?: object;
  /** The text of an event; empty in the last one. */
  chunk(text: string): object;
}

/** OpenAI's count of tokens. */
export interface Usage {
  /** 0: the function's tokens are its own, so the runtime cannot count those of a prompt. */
  readonly prompt_tokens: 0;
  /** The pieces that the function gave. */
  readonly completion_tokens: number;
  readonly total_tokens: number;
}

/** Answers a request with `pieces`. Rejects where they fail before the first one: that has a status of its own. */
export async function answer(
  pieces: AsyncIterable<Piece, void, undefined>,
  http: HttpContext,
  options: AnswerOptions,
  form: AnswerForm,
): Promise<Response> {
  if (!options.stream) return Response.json(await wholeAnswer(pieces, http, options, form));
  return eventStream(await started(events(pieces, http.id, options, form)));
}

async function wholeAnswer(
  pieces: AsyncIterable<Piece, void, undefined>,
  { id, maxMessageBytes }: HttpContext,
  { model }: AnswerOptions,
  form: AnswerForm,
): Promise<object> {
  let text = "";
  let last: Piece | undefined;
  for await (const piece of withTurns(pieces)) {
    text += piece.text;
    last = piece;
    if (text.length > maxMessageBytes) throw tooLong(maxMessageBytes);
  }
  return {
    ...headOf(id, form.object, model, form),
    choices: [choice(form.whole(text), last!.finish)],
    usage: usageOf(last!),
  };
}

async function* events(
  pieces: AsyncIterable<Piece, void, undefined>,
  id: string,
  { model, includeUsage }: AnswerOptions,
  form: AnswerForm,
): AsyncGenerator<string, void, undefined> {
  const head = headOf(id, form.chunkObject, model, form);
  const event = (part: object, finish: FinishReason | null) =>
    JSON.stringify({ ...head, choices: [choice(part, finish)], ...includeUsage && { usage: null } });
  let begun = false;
  try {
    for await (const piece of pieces) {
      if (!begun && form.opening) yield event(form.opening, null);
      begun = true;
      yield event(form.chunk(piece.text), piece.finish);
      if (piece.finish && includeUsage) yield JSON.stringify({ ...head, choices: [], usage: usageOf(piece) });
    }
    yield "[DONE]";
  } catch (error) {
    if (!begun) throw error;
    yield JSON.stringify(errorBody(toModelError(error, id)));
  }
}

function tooLong(maxBytes: number): ModelError {
  return badField(
    "max_tokens",
    `Cannot send the answer: it takes more than ${maxBytes} bytes (option maxMessageBytes); bound it by max_tokens`,
  );
}

function headOf(id: string, object: string, model: string, form: AnswerForm): object {
  return { id: `${form.idPrefix}-${id}`, object, created: Math.floor(Date.now() / 1000), model };
}

function choice(part: object, finish: FinishReason | null): object {
  return { index: 0, ...part, logprobs: null, finish_reason: finish };
}

function usageOf({ tokens }: Piece): Usage {
  return { prompt_tokens: 0, completion_tokens: tokens, total_tokens: tokens };
}
