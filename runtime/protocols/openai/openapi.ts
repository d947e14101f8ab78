// The routes as a part of the OpenAPI document: what of OpenAI's API there is. Fields that are not named are ignored.
import type { OpenApiPart } from "../adapter.ts";
import {
  CALLING,
  COUNT,
  FLAG,
  json,
  list,
  nullable,
  object,
  only,
  operation,
  type OperationOptions,
  ref,
  TEXT,
} from "../openapi.ts";

const SOME_TEXT = { type: "string", minLength: 1 };
const INT53 = 2 ** 53 - 1;
const number = (minimum: number, maximum: number) => ({
  ...nullable({ type: "number", minimum, maximum }),
  description: "For functions that declare it, which may have other bounds.",
});
const TOKENS = nullable({ type: "integer", minimum: 1, maximum: INT53 });

/** What both requests have. */
const OPTIONS = {
  stream: nullable(FLAG),
  stream_options: nullable(object({}, { include_usage: nullable(FLAG) })),
  stop: nullable({ anyOf: [SOME_TEXT, list(SOME_TEXT, { maxItems: 4 })] }),
  max_tokens: TOKENS,
  max_completion_tokens: TOKENS,
  temperature: number(0, 2),
  top_p: number(0, 1),
  frequency_penalty: number(-2, 2),
  presence_penalty: number(-2, 2),
  seed: nullable({ type: "integer", minimum: -INT53, maximum: INT53 }),
  n: only(1, null),
};
// stream_options belong to a stream.
const STREAMS = {
  if: { properties: { stream_options: { type: "object" } }, required: ["stream_options"] },
  then: { properties: { stream: { const: true } }, required: ["stream"] },
};

const FINISH = only("stop", "length");
const head = (object: string) => ({
  id: TEXT,
  object: { const: object },
  created: COUNT,
  model: TEXT,
});
const choices = (part: Readonly<Record<string, object>>, finish: object, more: object = {}) =>
  list(object({ index: COUNT, ...part, logprobs: { type: "null" }, finish_reason: finish }), { maxItems: 1, ...more });
const whole = (name: string, part: Readonly<Record<string, object>>) =>
  object({ ...head(name), choices: choices(part, FINISH, { minItems: 1 }), usage: ref("OpenAiUsage") });
const chunk = (name: string, part: Readonly<Record<string, object>>) =>
  object({ ...head(name), choices: choices(part, nullable(FINISH)) }, { usage: nullable(ref("OpenAiUsage")) });

const SCHEMAS = {
  OpenAiError: object({
    error: object({ message: TEXT, type: TEXT, param: nullable(TEXT), code: nullable(TEXT) }),
  }),
  OpenAiModel: object({ id: TEXT, object: { const: "model" }, created: COUNT, owned_by: TEXT }),
  OpenAiModels: object({ object: { const: "list" }, data: list(ref("OpenAiModel")) }),
  OpenAiUsage: object({
    prompt_tokens: { ...COUNT, description: "0: only the function knows its tokens." },
    completion_tokens: { ...COUNT, description: "The pieces that the function gave." },
    total_tokens: COUNT,
  }),
  OpenAiCompletionRequest: {
    ...object({ model: SOME_TEXT }, {
      prompt: nullable({ anyOf: [TEXT, list(TEXT, { minItems: 1, maxItems: 1 })] }),
      ...OPTIONS,
    }),
    ...STREAMS,
  },
  OpenAiCompletion: whole("text_completion", { text: TEXT }),
  OpenAiCompletionChunk: chunk("text_completion", { text: TEXT }),
  OpenAiMessage: object({
    role: only("system", "developer", "user", "assistant"),
    content: { anyOf: [TEXT, list(object({ type: { const: "text" }, text: TEXT }))] },
  }),
  OpenAiChatRequest: {
    ...object({
      model: SOME_TEXT,
      messages: list(ref("OpenAiMessage"), { minItems: 1, description: "The last one is the user's." }),
    }, OPTIONS),
    ...STREAMS,
  },
  OpenAiChat: whole("chat.completion", {
    message: object({ role: { const: "assistant" }, content: TEXT, refusal: { type: "null" } }),
  }),
  OpenAiChatChunk: chunk("chat.completion.chunk", {
    delta: object({}, { role: { const: "assistant" }, content: TEXT }),
  }),
};

// As OpenAPI 3.2 describes an item of a stream of events.
const event = (chunk: string) => ({
  anyOf: [
    { const: "[DONE]" },
    { ...TEXT, contentMediaType: "application/json", contentSchema: { anyOf: [ref(chunk), ref("OpenAiError")] } },
  ],
});

const TAG = "OpenAI";

const one = (method: "get" | "post", path: string, told: Omit<OperationOptions, "tag" | "error">) => ({
  [path]: { [method]: operation(path, { tag: TAG, error: ref("OpenAiError"), ...told }) },
});
const generation = (path: string, summary: string, name: string) =>
  one("post", path, {
    summary: `${summary}; as events the last is \`[DONE]\` or an error`,
    body: json(ref(`${name}Request`)),
    answer: {
      content: {
        ...json(ref(name)).content,
        "text/event-stream": { schema: object({ data: event(`${name}Chunk`) }, { event: TEXT }) },
      },
    },
    failures: CALLING,
  });

/** The routes, described. */
export const OPENAPI: OpenApiPart = {
  tags: [{ name: TAG, description: "OpenAI's API, for functions that write texts" }],
  paths: {
    ...one("get", "/v1/models", { summary: "Every function", answer: json(ref("OpenAiModels")) }),
    ...one("get", "/v1/models/{model}", {
      summary: "One function",
      answer: json(ref("OpenAiModel")),
      failures: [404],
    }),
    ...generation("/v1/chat/completions", "Answers the last message of a conversation", "OpenAiChat"),
    ...generation("/v1/completions", "Continues a text", "OpenAiCompletion"),
  },
  schemas: SCHEMAS,
};
