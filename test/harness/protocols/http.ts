// Calls over HTTP, in memory.
import type { TestServer } from "tensorlet/testing";
import { type Answer, type Ask, tensorOf, textOf, versionOf } from "./protocol.ts";

// deno-lint-ignore no-explicit-any
type Json = any;
/** What differs between routes. */
interface Form {
  readonly path: (ask: Ask) => string;
  readonly body: (ask: Ask) => object;
  /** The text of a whole answer, or of an event; undefined where it has none. */
  readonly text: (json: Json) => string | undefined;
}

async function post(server: TestServer, { path, body }: Form, ask: Ask): Promise<Response> {
  const headers = {
    "content-type": "application/json",
    ...ask.requestId !== undefined && { "x-request-id": ask.requestId },
  };
  const init = { method: "POST", headers, body: JSON.stringify(body(ask)), ...ask.signal && { signal: ask.signal } };
  return await server.fetch(new Request(`http://server${path(ask)}`, init));
}

async function failureOf(response: Response): Promise<Answer> {
  const { error } = await response.json();
  return { code: response.status, message: error.message ?? error, text: "", requestId: requestIdOf(response) };
}

function requestIdOf({ headers }: Response): string | null {
  return headers.get("x-request-id");
}

/** Calls a route that answers whole. */
function asking(form: Form) {
  return async (server: TestServer, ask: Ask): Promise<Answer> => {
    const response = await post(server, form, ask);
    if (!response.ok) return await failureOf(response);
    const text = form.text(await response.json()) ?? "";
    return { code: "ok", message: "", text, requestId: requestIdOf(response) };
  };
}

/** Calls a route that answers in events. */
function askingEvents(form: Form) {
  return async (server: TestServer, ask: Ask): Promise<Answer> => {
    const response = await post(server, form, ask);
    if (!response.ok) return await failureOf(response);
    let text = "";
    const requestId = requestIdOf(response);
    for (const json of await eventsOf(response, ask.signal)) {
      text += form.text(json) ?? "";
      const { error = json.type === "error" ? json : undefined } = json;
      if (error) return { code: undefined, message: error.message ?? error, text, requestId };
    }
    return { code: "ok", message: "", text, requestId };
  };
}

// A client that leaves reads no more.
async function eventsOf(response: Response, signal?: AbortSignal): Promise<Json[]> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  signal?.addEventListener("abort", () => reader.cancel(), { once: true });
  let text = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) text += part.value;
  const events = text.split("\n\n").map((event) => event.replace(/^data: /, ""));
  return events.filter((event) => event !== "" && event !== "[DONE]").map((event) => JSON.parse(event));
}

const join = (values: readonly number[] | number) => [values].flat().join(" ");

const ofModel = (action: string) => (ask: Ask) => {
  const [name, version] = versionOf(ask);
  return `/v2/models/${name}${version && `/versions/${version}`}/${action}`;
};

/** `POST /v2/models/:model/infer`. */
export const askHttpInfer = asking({
  path: ofModel("infer"),
  body: (ask) => {
    const { numbers, datatype, shape } = tensorOf(ask);
    return { inputs: [{ name: "x", datatype, shape, data: numbers }], parameters: ask.params };
  },
  text: ({ outputs: [{ data }] }) => join(data),
});

const maxTokensOf = ({ maxTokens }: Ask) => maxTokens === undefined ? {} : { max_tokens: maxTokens };
const generateBody = (ask: Ask) => ({ x: tensorOf(ask).numbers, ...ask.params, ...maxTokensOf(ask) });

/** `POST /v2/models/:model/generate`. */
export const askGenerate = asking({
  path: ofModel("generate"),
  body: generateBody,
  text: ({ OUTPUT__0 }) => join(OUTPUT__0),
});

/** `POST /v2/models/:model/generate_stream`. */
export const askGenerateStream = askingEvents({
  path: ofModel("generate_stream"),
  body: generateBody,
  text: ({ text_output }) => text_output,
});

const completions: Form = {
  path: () => "/v1/completions",
  body: (ask) => ({ model: ask.model, prompt: textOf(ask), ...ask.params, ...maxTokensOf(ask) }),
  text: ({ choices }) => choices?.[0].text,
};

const chatCompletions: Form = {
  path: () => "/v1/chat/completions",
  body: (ask) => ({
    model: ask.model,
    messages: [{ role: "user", content: textOf(ask) }],
    ...ask.params,
    ...maxTokensOf(ask),
  }),
  text: ({ choices }) => (choices?.[0].message ?? choices?.[0].delta)?.content,
};

const inEvents = (form: Form): Form => ({ ...form, body: (ask) => ({ ...form.body(ask), stream: true }) });

/** `POST /v1/completions`. */
export const askCompletion = asking(completions);
/** `POST /v1/completions` with `stream`. */
export const askCompletionEvents = askingEvents(inEvents(completions));
/** `POST /v1/chat/completions`. */
export const askChatCompletion = asking(chatCompletions);
/** `POST /v1/chat/completions` with `stream`. */
export const askChatCompletionEvents = askingEvents(inEvents(chatCompletions));

const ofFunction = (action: string) => ({ model }: Ask) => `/console/api/functions/${model}/${action}`;

function consoleBody(ask: Ask): object {
  const { dtype, shape, numbers } = tensorOf(ask);
  return { inputs: { x: { dtype, shape, data: numbers } }, params: ask.params };
}

/** `POST /console/api/functions/:name/predict`. */
export const askConsolePredict = asking({
  path: ofFunction("predict"),
  body: consoleBody,
  text: ({ outputs }) => join(outputs["0"].data),
});

/** `POST /console/api/functions/:name/stream`. */
export const askConsoleStream = askingEvents({
  path: ofFunction("stream"),
  body: consoleBody,
  text: ({ type, text }) => type === "token" ? text : undefined,
});

/** `POST /console/api/functions/:name/chat`. */
export const askConsoleChat = askingEvents({
  path: ofFunction("chat"),
  body: (ask) => ({ sessionId: crypto.randomUUID(), content: textOf(ask), params: ask.params }),
  text: ({ type, text }) => type === "token" ? text : undefined,
});
