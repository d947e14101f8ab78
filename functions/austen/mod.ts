// Writes on in the manner of Jane Austen: a small language model that streams its tokens, and talks.
import { defineModel, ModelError, type ParamsOf } from "tensorlet";
import { encodeDialogue, OPENING_QUOTE } from "./dialogue.ts";
import { generate } from "./generate.ts";
import { CONTEXT } from "./cache.ts";
import { loadNetwork, type Network } from "./network.ts";
import { createSampler, randomSeed } from "./sampler.ts";
import { toText } from "./text.ts";
import { createTokenizer, type Tokenizer } from "./tokenizer.ts";
import tokenizerData from "./tokenizer.json" with { type: "json" };

/** What `load` makes. */
export interface Austen {
  readonly tokenizer: Tokenizer;
  readonly network: Network;
}

const params = {
  prompt: { type: "string", default: "", description: "The text to continue; empty = a new paragraph" },
  max_tokens: { type: "integer", default: 100, min: 1, description: "For callers without a max_tokens of their own" },
  temperature: { type: "number", default: 0.8, min: 0, max: 5, description: "0 = always the likeliest token" },
  top_k: { type: "integer", default: 40, min: 1, max: 1024, description: "Draws from so many likeliest tokens" },
  seed: { type: "integer", min: 0, max: 2 ** 32 - 1, description: "The same seed, the same text; without: random" },
} as const;

/** Paragraphs are lines, so this token begins one, and ends one. */
const NEWLINE = "\n";

export default defineModel({
  description: "A small language model that continues texts and conversations in the manner of Jane Austen",
  input: {},
  params,

  load: async (): Promise<Austen> => ({ tokenizer: createTokenizer(tokenizerData), network: await loadNetwork() }),
  unload: ({ network }) => network.release(),

  async *stream(_input, ctx) {
    const { tokenizer } = ctx.model;
    const prompt = encodePrompt(ctx.params.prompt, tokenizer);
    yield* writeOn(prompt, [tokenizer.endOfText], ctx);
  },

  async *chat(message, ctx) {
    const { tokenizer } = ctx.model;
    // Half of the context is for the conversation, half for the answer.
    const prompt = encodeDialogue([...ctx.session.history, message], tokenizer, CONTEXT / 2);
    let opening = OPENING_QUOTE; // it stands in the prompt, so the model does not write it
    for await (const piece of writeOn(prompt, [tokenizer.endOfText, ...tokenizer.encode(NEWLINE)], ctx)) {
      yield opening + piece;
      opening = "";
    }
  },
});

interface WriteContext {
  readonly model: Austen;
  readonly params: ParamsOf<typeof params>;
  readonly maxTokens: number | undefined;
  readonly signal: AbortSignal;
}

function writeOn(prompt: readonly number[], stopAt: readonly number[], ctx: WriteContext): AsyncIterable<string, void> {
  const { temperature, top_k: topK, seed = randomSeed(), max_tokens } = ctx.params;
  const sample = createSampler({ temperature, topK, seed });
  const limit = ctx.maxTokens ?? max_tokens;
  return toText(
    generate(ctx.model.network, prompt, { sample, limit, stopAt, signal: ctx.signal }),
    ctx.model.tokenizer,
  );
}

function encodePrompt(prompt: string, tokenizer: Tokenizer): number[] {
  const tokens = tokenizer.encodeEnd(prompt || NEWLINE, CONTEXT);
  if (tokens.length > 0) return tokens;
  const shown = JSON.stringify(prompt.length > 40 ? `${prompt.slice(0, 40)}…` : prompt);
  throw new ModelError(
    "invalid_argument",
    `Cannot continue the prompt: got ${shown}, wanted at least one printable ASCII character`,
  );
}
