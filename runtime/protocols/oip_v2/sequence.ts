// Triton's sequences are sessions: START begins one, END ends it.
import type { ChatCall, Reply } from "../../core/call.ts";
import { ModelError, quote } from "../../core/error.ts";
import type { AdapterHost } from "../adapter.ts";
import { badParameter, flagOf, type Parameters } from "./parameters.ts";

/** What a request says of its sequence. */
export interface Sequence {
  readonly id: string;
  readonly start: boolean;
  readonly end: boolean;
}

const MAX_ID_BYTES = 256;

/** The sequence that a request belongs to; ids 0 and "" are none. */
export function readSequence(parameters: Parameters): Sequence | undefined {
  const value = parameters.get("sequence_id") ?? "";
  const isText = typeof value === "string";
  if (!isText && !((typeof value === "bigint" || Number.isSafeInteger(value)) && Number(value) >= 0)) {
    throw badParameter("sequence_id", value, "wanted a whole number from 0, or a text");
  }
  const id = `${value}`;
  const [start, end] = [flagOf(parameters, "sequence_start"), flagOf(parameters, "sequence_end")];
  if (id === "" || id === "0") return undefined;
  const { length } = new TextEncoder().encode(id);
  if (length <= MAX_ID_BYTES) return { id, start, end };
  throw badParameter("sequence_id", id, `wanted at most ${MAX_ID_BYTES} bytes`);
}

/** The error for a request to a function of sequences that names none. */
export function wantsSequence(model: string): ModelError {
  return new ModelError(
    "invalid_argument",
    `inference request to model '${model}' must specify a non-zero or non-empty correlation ID (parameter sequence_id)`,
  );
}

/** Answers one request of a sequence. */
export async function* runSequence(
  { invoke, sessions }: AdapterHost,
  call: ChatCall,
  { id, start, end }: Sequence,
): AsyncGenerator<Reply, void, undefined> {
  const { model, version } = call;
  const release = await sessions.holdExisting(model, version, id);
  try {
    if (!release && !start) {
      throw new ModelError(
        "invalid_argument",
        `inference request for sequence ${quote(id)} to model '${model}' must specify the START flag on the first ` +
          "request of the sequence",
      );
    }
    if (release && start) await sessions.end(model, version, id);
    yield* invoke(call);
  } finally {
    release?.();
    if (end) await sessions.end(model, version, id);
  }
}
