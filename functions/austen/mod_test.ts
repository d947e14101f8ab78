import { ModelError } from "tensorlet";
import { assert, assertEquals, assertMatch, assertRejects } from "tensorlet/assert";
import { testModel } from "tensorlet/testing";
import { FakeNetwork } from "./fake_network.ts";
import austen from "./mod.ts";
import { toText } from "./text.ts";
import { createTokenizer } from "./tokenizer.ts";
import tokenizerData from "./tokenizer.json" with { type: "json" };

const tokenizer = createTokenizer(tokenizerData);

/** The function with a network that writes `text` (and then ends it, or goes on), without weights. */
function writing(text: string, { end = true } = {}) {
  const script = [...tokenizer.encode(text), ...end ? [tokenizer.endOfText] : []];
  const network = new FakeNetwork(script, { repeat: !end });
  return { network, harness: testModel(austen, { model: { tokenizer, network } }) };
}

async function read(tokens: readonly number[] | undefined): Promise<string> {
  return (await Array.fromAsync(toText(tokens ?? [], tokenizer))).join("");
}

Deno.test("austen streams a piece for each token", async () => {
  const { network, harness } = writing(" was a young woman.");
  await using model = await harness;
  const pieces = await Array.fromAsync(model.stream({}, { params: { prompt: "Emma" } }));
  assertEquals(pieces, [" was", " a", " young", " woman", "."]);
  assertEquals(await read(network.prompts[0]), "Emma");
});

Deno.test("austen writes max_tokens tokens, 100 unless told otherwise", async () => {
  const { harness } = writing(" very", { end: false });
  await using model = await harness;
  const count = async (options?: Parameters<typeof model.stream>[1]) =>
    (await Array.fromAsync(model.stream({}, options))).length;
  assertEquals(await count(), 100);
  assertEquals(await count({ maxTokens: 7 }), 7);
  assertEquals(await count({ params: { max_tokens: 12 } }), 12);
  assertEquals(await count({ params: { max_tokens: 12 }, maxTokens: 1000 }), 1000);
});

Deno.test("austen begins a paragraph when the prompt is empty", async () => {
  const { network, harness } = writing("It was");
  await using model = await harness;
  assertEquals(await Array.fromAsync(model.stream({})), ["It", " was"]);
  assertEquals(await read(network.prompts[0]), "\n");
});

Deno.test("austen refuses a prompt of which it knows no character", async () => {
  await using model = await writing("It was").harness;
  const request = () => Array.fromAsync(model.stream({}, { params: { prompt: "\u4f60\u597d" } }));
  const error = await assertRejects(request, ModelError, 'Cannot continue the prompt: got "\u4f60\u597d"');
  assertEquals(error.code, "invalid_argument");
});

Deno.test("austen refuses params out of their range", async () => {
  await using model = await writing("It was").harness;
  for (const params of [{ temperature: -1 }, { top_k: 0 }, { seed: 0.5 }, { max_tokens: 0 }]) {
    const [name] = Object.keys(params);
    await assertRejects(() => Array.fromAsync(model.stream({}, { params })), ModelError, `param "${name}"`);
  }
});

Deno.test("austen answers with a paragraph", async () => {
  const { network, harness } = writing('Indeed," said Emma, "I am."\nShe');
  await using model = await harness;
  const chat = model.chat();
  assertEquals(await chat.sendAll("Are you happy?"), '"Indeed," said Emma, "I am."');
  assertEquals(await read(network.prompts[0]), '"Are you happy?"\n"');
});

Deno.test("austen remembers the conversation", async () => {
  const { network, harness } = writing('Yes."\n', { end: false });
  await using model = await harness;
  const chat = model.chat();
  assertEquals(await chat.sendAll("Are you happy?"), '"Yes."');
  assertEquals(await chat.sendAll("Quite happy?"), '"Yes."');
  assertEquals(await read(network.prompts[1]), '"Are you happy?"\n"Yes."\n"Quite happy?"\n"');
});

Deno.test("austen leaves half of the context to the answer", async () => {
  const { network, harness } = writing('Yes."\n', { end: false });
  await using model = await harness;
  const chat = model.chat();
  for (let turn = 0; turn < 20; turn++) await chat.sendAll("Are you quite sure that he is happy?");
  assertEquals(network.prompts.length, 20); // one for each turn: no answer ran out of room
  const longest = Math.max(...network.prompts.map((prompt) => prompt.length));
  assert(longest > 100 && longest <= 128, `${longest} tokens`);
});

Deno.test("austen answers with something even where the model has nothing to say", async () => {
  const { harness } = writing("\n");
  await using model = await harness;
  assertMatch(await model.chat().sendAll("Are you happy?"), /^"./);
});

Deno.test("austen keeps an answer within max_tokens", async () => {
  const { harness } = writing(" very", { end: false });
  await using model = await harness;
  assertEquals(await model.chat().sendAll("How happy?", { params: { max_tokens: 3 } }), '" very very very');
});

Deno.test("austen releases its networks", async () => {
  const { network, harness } = writing("It was");
  await (await harness)[Symbol.asyncDispose]();
  assertEquals(network.released, true);
});
