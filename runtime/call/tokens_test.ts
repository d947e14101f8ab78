import { assertEquals, assertMatch, assertRejects } from "tensorlet/assert";
import type { Output } from "./output.ts";
import { formatPace, writeTokens } from "./tokens.ts";

function memory(isTerminal: boolean): Output & { readonly text: () => string } {
  let text = "";
  return {
    isTerminal,
    write: (part) => Promise.resolve(void (text += part)),
    writeBytes: () => Promise.reject(new Error("no bytes")),
    text: () => text,
  };
}

async function* tokensOf(...tokens: readonly string[]): AsyncGenerator<string, void, undefined> {
  yield* tokens;
}

Deno.test("writeTokens() leaves a file the tokens alone, and begins a line on a terminal and between turns", async () => {
  const write = async (isTerminal: boolean, turn: number | undefined, ...tokens: readonly string[]) => {
    const output = memory(isTerminal);
    const pace = await writeTokens(tokensOf(...tokens), output, { json: false, ...turn !== undefined && { turn } });
    return [output.text(), pace.tokens];
  };
  assertEquals(await write(false, undefined, "It", " was"), ["It was", 2]);
  assertEquals(await write(true, undefined, "It", " was"), ["It was\n", 2]);
  assertEquals(await write(false, 1, "It", " was"), ["It was\n", 2]);
  assertEquals(await write(true, undefined, "It\n", ""), ["It\n", 2]);
  assertEquals(await write(true, undefined), ["", 0]);
});

Deno.test("writeTokens() writes a line of JSON for each token, and one for the pace", async () => {
  const output = memory(false);
  await writeTokens(tokensOf('"', "\x1b\x9b"), output, { json: true, turn: 3, sessionId: "s" });
  const [first, second, last, end] = output.text().split("\n");
  assertEquals(first, '{"turn":3,"index":0,"token":"\\""}');
  assertEquals(second, '{"turn":3,"index":1,"token":"\\u001b\\u009b"}');
  assertMatch(
    last!,
    /^\{"turn":3,"done":true,"tokens":2,"first_token_ms":\d+\.\d{3},"total_ms":\d+\.\d{3},"session_id":"s"\}$/,
  );
  assertEquals(end, "");
  const empty = memory(false);
  await writeTokens(tokensOf(), empty, { json: true });
  assertMatch(empty.text(), /^\{"done":true,"tokens":0,"first_token_ms":null,/);
});

Deno.test("writeTokens() ends the line of what was cut short", async () => {
  const output = memory(true);
  async function* broken() {
    yield "It";
    throw new Error("broken");
  }
  await assertRejects(() => writeTokens(broken(), output, { json: false }), Error, "broken");
  assertEquals(output.text(), "It\n");
});

Deno.test("formatPace() says the first token's time and the rate of the others", () => {
  assertEquals(
    formatPace({ tokens: 41, firstTokenMs: 12.4, totalMs: 212.4 }),
    "41 tokens, the first after 12 ms, then 200 tokens/s",
  );
  assertEquals(formatPace({ tokens: 1, firstTokenMs: 3, totalMs: 9 }), "1 token, the first after 3 ms");
  assertEquals(formatPace({ tokens: 0, firstTokenMs: undefined, totalMs: 9 }), "0 tokens in 9 ms");
});
