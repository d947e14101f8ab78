import type { ChatMessage } from "tensorlet";
import { assert, assertEquals } from "tensorlet/assert";
import { encodeDialogue } from "./dialogue.ts";
import { createTokenizer } from "./tokenizer.ts";
import tokenizerData from "./tokenizer.json" with { type: "json" };

const tokenizer = createTokenizer(tokenizerData);

function dialogue(turns: readonly ChatMessage[], maxTokens = 128): string {
  const tokens = encodeDialogue(turns, tokenizer, maxTokens);
  assert(tokens.length <= maxTokens, `${tokens.length} tokens`);
  return new TextDecoder().decode(Uint8Array.from(tokens.flatMap((token) => [...tokenizer.bytes(token)])));
}

Deno.test("encodeDialogue() makes each turn a paragraph and opens the answer", () => {
  const turns: ChatMessage[] = [
    { role: "user", content: "How do you do?" },
    { role: "assistant", content: '"Very well," said she, "I thank you."' },
    { role: "user", content: 'Is it "true"?\nTell me!' },
  ];
  assertEquals(
    dialogue(turns),
    `"How do you do?"\n"Very well," said she, "I thank you."\n"Is it 'true'? Tell me!"\n"`,
  );
});

Deno.test("encodeDialogue() leaves out the oldest turns where there is no room", () => {
  const turns: ChatMessage[] = Array.from({ length: 100 }, (_, i) => ({ role: "user", content: `Number ${i}.` }));
  const lines = dialogue(turns).split("\n");
  assertEquals(lines.at(-2), '"Number 99."');
  assertEquals(lines[0], `"Number ${100 - lines.length + 1}."`); // whole turns only
  assert(lines.length > 5);
});

Deno.test("encodeDialogue() keeps the end of a message that is too long", () => {
  const text = dialogue([{ role: "user", content: `${"many words ".repeat(1000)}the end` }]);
  assert(text.endsWith('words the end"\n"'), text);
});
