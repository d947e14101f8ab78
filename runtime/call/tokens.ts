// Tokens as they come, and how fast they came.
import { quoteJson } from "./json.ts";
import type { Output } from "./output.ts";

/** How fast tokens came. */
export interface Pace {
  readonly tokens: number;
  /** From the call to its first token; undefined where none came. */
  readonly firstTokenMs: number | undefined;
  readonly totalMs: number;
}

/** How tokens are written. */
export interface TokenFormat {
  /** A line of JSON each. */
  readonly json: boolean;
  /** Of a conversation: its turn, which stands in every line, and its id, which stands in the last. */
  readonly turn?: number;
  readonly sessionId?: string;
}

/** Writes tokens as they come, and with `json` a last line with their pace. */
export async function writeTokens(
  tokens: AsyncIterable<string>,
  output: Output,
  { json, turn, sessionId }: TokenFormat,
): Promise<Pace> {
  const start = performance.now();
  const fields = turn === undefined ? "" : `"turn":${turn},`;
  let count = 0;
  let firstTokenMs: number | undefined;
  let last = "\n";
  try {
    for await (const token of tokens) {
      firstTokenMs ??= performance.now() - start;
      await output.write(json ? `{${fields}"index":${count},"token":${quoteJson(token)}}\n` : token);
      count++;
      if (token !== "") last = token;
    }
  } finally {
    // What follows on a terminal, or the next turn, begins a line; a file gets the answer and nothing else.
    const needsLine = output.isTerminal || turn !== undefined;
    if (!json && needsLine && !last.endsWith("\n")) await output.write("\n");
  }
  const pace = { tokens: count, firstTokenMs, totalMs: performance.now() - start };
  const session = sessionId === undefined ? "" : `,"session_id":${quoteJson(sessionId)}`;
  if (json) await output.write(`{${fields}${paceFields(pace)}${session}}\n`);
  return pace;
}

function paceFields({ tokens, firstTokenMs, totalMs }: Pace): string {
  const first = firstTokenMs === undefined ? "null" : firstTokenMs.toFixed(3);
  return `"done":true,"tokens":${tokens},"first_token_ms":${first},"total_ms":${totalMs.toFixed(3)}`;
}

/** `40 tokens, the first after 12 ms, then 310 tokens/s` */
export function formatPace({ tokens, firstTokenMs, totalMs }: Pace): string {
  const count = `${tokens} token${tokens === 1 ? "" : "s"}`;
  if (firstTokenMs === undefined) return `${count} in ${Math.round(totalMs)} ms`;
  const after = `${count}, the first after ${Math.round(firstTokenMs)} ms`;
  const seconds = (totalMs - firstTokenMs) / 1000;
  return tokens > 1 && seconds > 0 ? `${after}, then ${Math.round((tokens - 1) / seconds)} tokens/s` : after;
}
