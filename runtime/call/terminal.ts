// What a terminal is to show, and what it must not obey.

// Controls but tab and newline, and what turns the direction of text around.
const HARMFUL = /(?![\t\n])[\p{Cc}\p{Bidi_Control}]/gu;

/** The text with the characters made visible that could change the terminal or hide what was printed. */
export function visible(text: string): string {
  return text.replaceAll("\r\n", "\n").replaceAll(HARMFUL, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}
