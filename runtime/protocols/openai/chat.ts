// POST /v1/chat/completions: every request brings its whole conversation, so it is one turn of a session that its caller
// gives, and that nobody keeps.
import { type AdapterHost, callBase, type HttpContext } from "../adapter.ts";
import { answer, type AnswerForm } from "./answer.ts";
import { readFields } from "./body.ts";
import { generate } from "./generate.ts";
import { readMessages } from "./messages.ts";
import { entryOf, readOptions, readParams } from "./options.ts";

const FORM: AnswerForm = {
  idPrefix: "chatcmpl",
  object: "chat.completion",
  chunkObject: "chat.completion.chunk",
  whole: (content) => ({ message: { role: "assistant", content, refusal: null } }),
  opening: { delta: { role: "assistant", content: "" } },
  chunk: (content) => ({ delta: content === "" ? {} : { content } }),
};

/** Answers `POST /v1/chat/completions`. */
export async function chat(host: AdapterHost, request: Request, http: HttpContext): Promise<Response> {
  const fields = await readFields(request, http);
  const entry = entryOf(host, fields, "chat");
  const options = readOptions(fields, entry);
  const { history, message } = readMessages(fields);
  const params = readParams(fields, entry, options.maxTokens);
  const sessionId = crypto.randomUUID();
  const turn = history.filter(({ role }) => role === "assistant").length;
  const call = {
    ...callBase(http, entry, params, options.maxTokens),
    kind: "chat",
    sessionId,
    message,
    session: { id: sessionId, turn, history, state: undefined },
  } as const;
  return await answer(generate(host, call, options), http, options, FORM);
}
