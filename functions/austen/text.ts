import type { Tokenizer } from "./tokenizer.ts";

/**
 * Tokens as pieces of text that join to valid Unicode.
 *
 * A token whose bytes end within a character yields nothing: the decoder holds the bytes back and they come with the
 * token that completes the character. So a text can have fewer pieces than tokens, never more, and a bound on its
 * tokens bounds its pieces too. Half a character at the very end is dropped: there is nothing to show of it.
 */
export async function* toText(
  tokens: AsyncIterable<number> | Iterable<number>,
  tokenizer: Pick<Tokenizer, "bytes">,
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  for await (const token of tokens) {
    const piece = decoder.decode(tokenizer.bytes(token), { stream: true });
    if (piece !== "") yield piece;
  }
}
