// Every way to call a function, and which of the contract's cases it does not fit.
import * as grpc from "./grpc.ts";
import * as http from "./http.ts";
import type { CaseName, Protocol } from "./protocol.ts";

type Unfit = Readonly<Partial<Record<CaseName, string>>>;

/** It is a predict, or many. */
const PREDICT: Unfit = {
  "a failure after the first piece": "its answer is one piece",
  "max_tokens": "its answer is one piece",
};
/** The pieces are joined. */
const JOINED: Unfit = { "a failure after the first piece": "a failure takes the place of the whole answer" };
/** It carries a text. */
const TEXT: Unfit = { "a wrong dtype": "it carries a text", "a wrong shape": "it carries a text" };
/** Its only dtype is float32. */
const FLOATS: Unfit = { "a wrong dtype": "its tensors are float32" };
/** Its JSON has no dtypes. */
const UNTYPED: Unfit = { "a wrong dtype": "its JSON has the dtype that the function declares" };
/** It comes over HTTP. */
const HTTP: Unfit = { "the client's deadline": "HTTP has none" };
/** It is no predict. */
const UNBOUNDED: Unfit = { "the server's bound of a call": "tokens, turns and batches may take as long as they like" };
/** It cannot bound the pieces. */
const NO_MAX: Unfit = { "max_tokens": "it has no such field" };
/** It is OpenAI's. */
const OPENAI: Unfit = {
  ...TEXT,
  ...HTTP,
  ...UNBOUNDED,
  "an undeclared param": "OpenAI's clients send what functions do not declare: it is left out",
};
/** It is Triton's. */
const SEQUENCES: Unfit = { "no such handler": "a function that only chats wants a sequence, as with Triton" };

const UNSUITED = {
  unimplemented: [400, "OpenAI's clients try again what is a 5xx: a model that cannot do so is the request's fault"],
} as const;

/** The ways to call a function. */
export const PROTOCOLS: readonly Protocol[] = [
  { name: "InferenceService/Predict", kind: "predict", ask: grpc.askTensors, unfit: PREDICT },
  { name: "v1 Predict", kind: "predict", ask: grpc.askPredict, unfit: { ...PREDICT, ...FLOATS } },
  { name: "v1 StreamPredict", kind: "stream", ask: grpc.askStream, unfit: { ...FLOATS, ...UNBOUNDED } },
  { name: "v1 BatchPredict", kind: "batch", ask: grpc.askBatch, unfit: { ...PREDICT, ...FLOATS, ...UNBOUNDED } },
  { name: "v1 ChatStream", kind: "chat", ask: grpc.askChat, unfit: { ...TEXT, ...UNBOUNDED, ...NO_MAX } },
  { name: "ModelInfer", kind: "predict", ask: grpc.askInfer, unfit: PREDICT },
  { name: "ModelStreamInfer", kind: "stream", ask: grpc.askStreamInfer, unfit: { ...UNBOUNDED, ...SEQUENCES } },
  { name: "infer", kind: "predict", ask: http.askHttpInfer, unfit: { ...PREDICT, ...HTTP } },
  {
    name: "generate",
    kind: "predict",
    ask: http.askGenerate,
    unfit: { ...PREDICT, ...HTTP, ...UNTYPED, ...SEQUENCES },
  },
  {
    name: "generate_stream",
    kind: "stream",
    ask: http.askGenerateStream,
    unfit: { ...HTTP, ...UNTYPED, ...UNBOUNDED, ...SEQUENCES },
  },
  {
    name: "completions",
    kind: "stream",
    ask: http.askCompletion,
    unfit: { ...JOINED, ...OPENAI },
    instead: UNSUITED,
  },
  { name: "completions in events", kind: "stream", ask: http.askCompletionEvents, unfit: OPENAI, instead: UNSUITED },
  {
    name: "chat completions",
    kind: "chat",
    ask: http.askChatCompletion,
    unfit: { ...JOINED, ...OPENAI },
    instead: UNSUITED,
  },
  {
    name: "chat completions in events",
    kind: "chat",
    ask: http.askChatCompletionEvents,
    unfit: OPENAI,
    instead: UNSUITED,
  },
  { name: "console predict", kind: "predict", ask: http.askConsolePredict, unfit: { ...PREDICT, ...HTTP } },
  { name: "console stream", kind: "stream", ask: http.askConsoleStream, unfit: { ...HTTP, ...UNBOUNDED, ...NO_MAX } },
  {
    name: "console chat",
    kind: "chat",
    ask: http.askConsoleChat,
    unfit: { ...HTTP, ...TEXT, ...UNBOUNDED, ...NO_MAX },
  },
];
