// The language model with its real networks. Needs files and native code.
import { ModelError } from "tensorlet";
import { assert, assertAlmostEquals, assertEquals, assertLess, assertNotEquals, assertRejects } from "tensorlet/assert";
import { testModel } from "tensorlet/testing";
import austen from "../../functions/austen/mod.ts";
import { loadNetwork, type Network } from "../../functions/austen/network.ts";
import { createTokenizer } from "../../functions/austen/tokenizer.ts";
import tokenizerData from "../../functions/austen/tokenizer.json" with { type: "json" };

const tokenizer = createTokenizer(tokenizerData);
const open = () => testModel(austen);
type Model = Awaited<ReturnType<typeof open>>;
type StreamOptions = NonNullable<Parameters<Model["stream"]>[1]>;

async function write(model: Model, params: StreamOptions["params"] & object, maxTokens = 30): Promise<string> {
  return (await Array.fromAsync(model.stream({}, { params, maxTokens }))).join("");
}

Deno.test("austen writes the same text with the same seed only", async () => {
  await using model = await open();
  const text = await write(model, { prompt: "Emma was", seed: 1 });
  assertEquals(await write(model, { prompt: "Emma was", seed: 1 }), text);
  assertNotEquals(await write(model, { prompt: "Emma was", seed: 2 }), text);
  const unseeded = [await write(model, { prompt: "Emma was" }), await write(model, { prompt: "Emma was" })];
  assertNotEquals(unseeded[0], unseeded[1]);
});

Deno.test("austen writes the likeliest text at temperature 0", async () => {
  await using model = await open();
  const text = await write(model, { prompt: "She had been", temperature: 0 }, 10);
  assertEquals(text, " a very fine young man, and the other");
});

Deno.test("austen sends the first piece before it computes the second", async () => {
  const network = await loadNetwork();
  let runs = 0;
  const counting: Network = {
    prefill: (tokens) => (runs++, network.prefill(tokens)),
    decode: (token, cache) => (runs++, network.decode(token, cache)),
    release: () => network.release(),
  };
  await using model = await testModel(austen, { model: { tokenizer, network: counting } });
  const seen: number[] = [];
  for await (const _ of model.stream({}, { params: { prompt: "Emma was" }, maxTokens: 5 })) seen.push(runs);
  assertEquals(seen, [1, 2, 3, 4, 5]);
  assertEquals(runs, 5);
});

Deno.test("austen writes beyond its context", async () => {
  await using model = await open();
  const pieces = await Array.fromAsync(model.stream({}, { params: { seed: 5 }, maxTokens: 1000 }));
  assertEquals(pieces.length, 1000);
  const words = pieces.slice(300).join("").split(/\s+/); // after the context was cut at least once
  assert(new Set(words).size > words.length / 4, `only ${new Set(words).size} of ${words.length} words differ`);
});

Deno.test("austen reads the end of a long prompt", async () => {
  await using model = await open();
  const prompt = "It was a very long letter. ".repeat(5000);
  assertEquals(
    await write(model, { prompt, temperature: 0 }),
    await write(model, { prompt: prompt.slice(-10_000), temperature: 0 }),
  );
});

Deno.test("austen passes over characters that it does not know", async () => {
  await using model = await open();
  const text = await write(model, { prompt: "\u201cEmma\u201d \u{1f600}was\u00e9", seed: 3 });
  assertEquals(text, await write(model, { prompt: "Emma was", seed: 3 }));
  assert(text.isWellFormed() && !text.includes("\ufffd"), text);
});

Deno.test("austen keeps texts apart that it writes side by side", async () => {
  await using model = await open();
  const all = ["Emma was", "Mr. Darcy said", '"My dear', ""].map((prompt) => ({ prompt, seed: 4 }));
  const together = await Promise.all(all.map((params) => write(model, params)));
  for (const [i, params] of all.entries()) assertEquals(together[i], await write(model, params));
});

Deno.test("austen lets the event loop turn between tokens", async () => {
  await using model = await open();
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(new ModelError("cancelled", "The reader left")), 0);
  let count = 0;
  const read = async () => {
    for await (const _ of model.stream({}, { maxTokens: 2000, signal: controller.signal })) count++;
  };
  await assertRejects(read, ModelError, "The reader left");
  clearTimeout(timer);
  assertLess(count, 100);
});

Deno.test("austen answers in the light of the conversation", async () => {
  await using model = await open();
  const params = { temperature: 0, max_tokens: 40 };
  const answerAfter = async (...earlier: string[]) => {
    const chat = model.chat();
    for (const message of earlier) await chat.sendAll(message, { params });
    return await chat.sendAll("What do you think?", { params });
  };
  const fresh = await answerAfter();
  assert(/^".+/.test(fresh) && !fresh.includes("\n"), fresh);
  assertEquals(await answerAfter(), fresh);
  assertNotEquals(await answerAfter("Mr. Darcy will dance with Elizabeth."), fresh);
});

Deno.test("austen talks on when the conversation outgrows the context", async () => {
  await using model = await open();
  const chat = model.chat();
  for (let turn = 0; turn < 12; turn++) {
    const answer = await chat.sendAll(`Tell me more of Mr. Darcy, ${turn}`, { params: { seed: turn, max_tokens: 60 } });
    assert(answer.length > 1, answer);
  }
  assertEquals(chat.session.turn, 12);
});

Deno.test("loadNetwork() scores alike what it reads at once and token by token", async () => {
  const network = await loadNetwork();
  try {
    const tokens = tokenizer.encode("It is a truth universally acknowledged, that a single man in possession");
    const { logits: atOnce } = await network.prefill(tokens);
    const { logits, cache } = await network.prefill(tokens.slice(0, 5));
    let stepwise = logits;
    for (const token of tokens.slice(5)) stepwise = await network.decode(token, cache);
    assertEquals(cache.length, tokens.length);
    for (const [i, score] of atOnce.entries()) assertAlmostEquals(stepwise[i]!, score, 1e-3);
  } finally {
    await network.release();
  }
});
