// A conversation as the model knows them from the novels: each turn a paragraph of one line, speech in quotation marks.
import type { ChatMessage } from "tensorlet";
import type { Tokenizer } from "./tokenizer.ts";

/** What the prompt ends with and every answer begins with: the next speaker opens their mouth. */
export const OPENING_QUOTE = '"';

/** The conversation as a prompt of `maxTokens` at most; the oldest turns are left out where it is longer. */
export function encodeDialogue(turns: readonly ChatMessage[], tokenizer: Tokenizer, maxTokens: number): number[] {
  let prompt = tokenizer.encode(OPENING_QUOTE);
  for (const turn of turns.toReversed()) {
    const room = maxTokens - prompt.length;
    const paragraph = tokenizer.encodeEnd(`${toParagraph(turn)}\n`, room + 1);
    // Half a turn would read as nonsense, but of the latest even its end is better than nothing.
    if (paragraph.length > room && turn !== turns.at(-1)) break;
    prompt = [...paragraph.slice(-room), ...prompt];
  }
  return prompt;
}

function toParagraph({ role, content }: ChatMessage): string {
  const line = content.trim().replace(/\s+/g, " ");
  // An answer has the quotation marks that the model wrote, and maybe narration between them.
  return role === "user" ? `"${line.replaceAll('"', "'")}"` : line;
}
