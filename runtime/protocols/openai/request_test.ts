import { assertEquals, assertThrows } from "tensorlet/assert";
import type { CatalogEntry } from "../../core/catalog.ts";
import { type AnyModel, defineModel, resolveModel } from "../../core/define.ts";
import { ModelError } from "../../core/error.ts";
import type { JsonObject } from "../../core/json.ts";
import { readMessages } from "./messages.ts";
import { readOptions, readParams } from "./options.ts";
import { promptInput, readPrompt } from "./prompt.ts";

function entryOf(definition: AnyModel): CatalogEntry {
  return { ...resolveModel(definition, "m", "1"), state: "ready", revision: 1 };
}

async function* stream() {
  yield "x";
}

const PARAMS = {
  temperature: { type: "number", min: 0, max: 5 },
  top_k: { type: "integer", min: 1 },
  shout: { type: "boolean" },
  max_tokens: { type: "integer", default: 100, max: 1000 },
  style: { type: "string", enum: ["plain", "grand"] },
  stop: { type: "string" },
} as const;
const typed = entryOf(defineModel({ params: PARAMS, stream }));
const untyped = entryOf(defineModel({ stream }));

const options = (fields: JsonObject, entry = typed) => readOptions({ model: "m", ...fields }, entry);
const params = (fields: JsonObject, entry = typed) => ({ ...readParams(fields, entry, undefined) });

function refused(read: () => unknown, param: string, wanted: string): void {
  const error = assertThrows(read, ModelError, wanted);
  assertEquals([error.code, error.details?.["param"]], ["invalid_argument", param]);
}

Deno.test("readOptions() takes what is left out, and null, for the defaults", () => {
  const defaults = { model: "m", stream: false, includeUsage: false, stop: [], maxTokens: undefined, limit: 100 };
  assertEquals(options({}), defaults);
  const nulls = { stream: null, stop: null, max_tokens: null, n: null, logprobs: null, stream_options: null };
  assertEquals(options(nulls), defaults);
  assertEquals(options({}, untyped).limit, undefined);
});

Deno.test("readOptions() reads how the answer is to be given", () => {
  const { stream, includeUsage, stop, maxTokens, limit } = options({
    stream: true,
    stream_options: { include_usage: true, include_obfuscation: false },
    stop: ["a", "b"],
    max_tokens: 3,
    n: 1,
  });
  assertEquals([stream, includeUsage, stop, maxTokens, limit], [true, true, ["a", "b"], 3, 3]);
  assertEquals(options({ stop: "a" }).stop, ["a"]);
  assertEquals(options({ max_tokens: 3, max_completion_tokens: 5 }).maxTokens, 5);
});

const WRONG: readonly (readonly [param: string, value: unknown, wanted: string])[] = [
  ["model", 5, "wanted a string"],
  ["model", "", "wanted the name of a function"],
  ["stream", "yes", "wanted a boolean"],
  ["stream_options", { include_usage: true }, 'without "stream": true'],
  ["stream_options", [], "wanted an object"],
  ["stop", 5, "wanted a text"],
  ["stop", "", "wanted a text that is not empty"],
  ["stop", ["a", "b", "c", "d", "e"], "up to 4"],
  ["stop", ["a", 1], "wanted a text"],
  ["max_tokens", 0, "wanted at least 1"],
  ["max_tokens", 1.5, "wanted a whole number"],
  ["max_completion_tokens", "5", 'got "5", wanted an integer'],
  ["n", 2, "wanted 1 or nothing"],
  ["best_of", 3, "not supported"],
  ["echo", true, "not supported"],
  ["logprobs", true, "not supported"],
  ["logit_bias", { "5": -100 }, "not supported"],
  ["tools", [{ type: "function" }], "not supported"],
  ["response_format", { type: "json_object" }, "not supported"],
];

for (const [param, value, wanted] of WRONG) {
  Deno.test(`readOptions() refuses ${param} ${JSON.stringify(value)}`, () =>
    refused(() => options({ [param]: value }), param, wanted));
}

Deno.test("readParams() gives a function what it declares, under its own bounds", () => {
  const given = { temperature: 3, top_k: 5, shout: true, style: "grand", user: "u", stop: "x" };
  assertEquals(params(given), { temperature: 3, top_k: 5, shout: true, style: "grand" });
  assertEquals({ ...readParams({}, typed, 7) }, { max_tokens: 7 });
  refused(() => params({ temperature: 6 }), "temperature", "wanted at most 5");
  refused(() => params({ top_k: "5" }), "top_k", "wanted an integer");
  refused(() => params({ style: "rude" }), "style", "wanted one of");
  refused(() => readParams({}, typed, 2000), "max_tokens", "wanted at most 1000");
});

Deno.test("readParams() leaves out what OpenAI knows and the function does not, but checks it", () => {
  assertEquals(params({ top_p: 0.5, seed: 1, presence_penalty: 1, unheard_of: "x" }), {});
  refused(() => params({ top_p: 2 }), "top_p", "wanted at most 1");
  refused(() => params({ seed: 1.5 }), "seed", "wanted a whole number");
  refused(() => params({ frequency_penalty: "high" }), "frequency_penalty", "wanted a number");
});

Deno.test("readParams() gives a function without declarations texts", () => {
  assertEquals(params({ temperature: 0.5, seed: 7, top_k: 5 }, untyped), { temperature: "0.5", seed: "7" });
});

Deno.test("readPrompt() reads one text", () => {
  assertEquals([{}, { prompt: null }, { prompt: "a" }, { prompt: ["a"] }].map(readPrompt), ["", "", "a", "a"]);
  for (const prompt of [5, [], ["a", "b"], [1, 2], [[1]]]) {
    refused(() => readPrompt({ prompt }), "prompt", "wanted one text");
  }
});

Deno.test("promptInput() gives the prompt to the param of that name, or to the one string that is wanted", () => {
  const param = entryOf(defineModel({ input: {}, params: { prompt: { type: "string" } }, stream }));
  assertEquals(promptInput(param, "hi"), { input: {}, params: { prompt: "hi" } });
  assertEquals(promptInput(untyped, "hi"), { input: {}, params: { prompt: "hi" } });
  const text = { dtype: "string", shape: [1, -1] } as const;
  const image = { dtype: "float32", optional: true } as const;
  const named = entryOf(defineModel({ input: { image, text }, output: { dtype: "string" }, stream }));
  assertEquals(promptInput(named, "hi"), {
    input: { text: { dtype: "string", shape: [1, 1], data: ["hi"] } },
    params: {},
  });
});

Deno.test("promptInput() refuses a function that takes or gives no text", () => {
  const dtype = "float32";
  const unsuited = [
    defineModel({ params: {}, stream }),
    defineModel({ params: { prompt: { type: "number" } }, stream }),
    defineModel({ input: { dtype }, output: { dtype: "string" }, predict: () => ["x"] }),
    defineModel({ input: { dtype: "string", shape: [2] }, stream }),
    defineModel({ input: { a: { dtype: "string" }, b: { dtype: "string" } }, stream }),
    defineModel({ input: { dtype: "string" }, output: { dtype }, predict: () => Float32Array.of(1) }),
  ];
  for (const model of unsuited) {
    refused(() => promptInput(entryOf(model), "x"), "model", "cannot complete a text");
  }
});

Deno.test("readMessages() reads a conversation that ends with its user", () => {
  const messages = [
    { role: "developer", content: "Be brief.", name: "me" },
    { role: "user", content: "Hi" },
    { role: "assistant", content: [{ type: "text", text: "He" }, { type: "text", text: "llo" }] },
    { role: "user", content: "Well?" },
  ];
  assertEquals(readMessages({ messages }), {
    history: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Hello" },
    ],
    message: { role: "user", content: "Well?" },
  });
});

Deno.test("readMessages() refuses what it cannot read, and names it", () => {
  const wrong: readonly (readonly [unknown, string, string])[] = [
    [undefined, "messages", "at least one message"],
    [[], "messages", "at least one message"],
    ["hi", "messages", "wanted an array"],
    [["hi"], "messages[0]", "wanted an object"],
    [[{ content: "hi" }], "messages[0].role", "wanted one of"],
    [[{ role: "constructor", content: "hi" }], "messages[0].role", "wanted one of"],
    [[{ role: "tool", content: "hi" }], "messages[0].role", "wanted one of"],
    [[{ role: "user", content: null }], "messages[0].content", "wanted a text"],
    [[{ role: "user", content: [{ type: "image_url" }] }], "messages[0].content", 'of type "text"'],
    [[{ role: "user", content: "a" }, { role: "assistant", content: "b" }], "messages[1].role", 'wanted "user"'],
  ];
  for (const [messages, param, text] of wrong) refused(() => readMessages({ messages }), param, text);
});
