// Byte-level byte-pair encoding: text <-> the numbers that the network reads and writes.

/** What `tokenizer.json` holds. */
export interface TokenizerData {
  /** The bytes of each token. */
  readonly vocab: readonly (readonly number[])[];
  /** The token that ends a text. */
  readonly eot: number;
  /** A regular expression for the words (and spaces) that are encoded each on its own. */
  readonly pattern: string;
  /** Pairs of tokens; the first pair makes the token after `eot`, the second the next, and so on. */
  readonly merges: readonly (readonly number[])[];
}

/** Text <-> tokens. */
export interface Tokenizer {
  readonly endOfText: number;
  /** The text's tokens. Characters with bytes that the vocabulary does not have are left out. */
  encode(text: string): number[];
  /** The last tokens of a text, `count` at most, at a cost that does not grow with the text. */
  encodeEnd(text: string, count: number): number[];
  /** The bytes of a token; a character can begin in one and end in the next. */
  bytes(token: number): Uint8Array<ArrayBuffer>;
}

/** Makes a tokenizer from its tables. */
export function createTokenizer({ vocab, eot, pattern, merges }: TokenizerData): Tokenizer {
  const tokenBytes = vocab.map((bytes) => Uint8Array.from(bytes));
  const longest = Math.max(...vocab.map((bytes) => bytes.length));
  const tokenOfByte = new Map(vocab.flatMap(([byte, ...rest], token) => rest.length === 0 ? [[byte!, token]] : []));
  const pairKey = (left: number, right: number) => left * vocab.length + right;
  const mergeOf = new Map(merges.map(([left, right], i) => [pairKey(left!, right!), eot + 1 + i]));
  const encoder = new TextEncoder();

  const isKnown = (character: string) => encoder.encode(character).every((byte) => tokenOfByte.has(byte));

  function encodeWord(word: string): number[] {
    let tokens = Array.from(encoder.encode(word), (byte) => tokenOfByte.get(byte)!);
    for (;;) {
      const pairs = tokens.slice(1).map((right, i) => mergeOf.get(pairKey(tokens[i]!, right)) ?? Infinity);
      // The pair that was merged first in training; reduce() rather than Math.min(...): a word can be very long.
      const merge = pairs.reduce((first, pair) => Math.min(first, pair), Infinity);
      if (merge === Infinity) return tokens;
      const shorter: number[] = [];
      for (let i = 0; i < tokens.length; i++) {
        if (pairs[i] === merge) {
          shorter.push(merge);
          i++; // its right half is in it
        } else shorter.push(tokens[i]!);
      }
      tokens = shorter;
    }
  }

  function encode(text: string): number[] {
    const known = [...text].filter(isKnown).join("");
    const words = known.match(new RegExp(pattern, "g")) ?? [];
    return words.flatMap(encodeWord);
  }

  return {
    endOfText: eot,
    encode,
    encodeEnd: (text, count) => encode(text.slice(-count * longest)).slice(-count),
    bytes: (token) => tokenBytes[token]!,
  };
}
