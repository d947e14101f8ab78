import { assertEquals } from "tensorlet/assert";
import { assertFails } from "../../test/harness/calls.ts";
import { decodeSession, encodeSession } from "./record.ts";

function sessionOf(state: unknown) {
  return { snapshot: { id: "s", turn: 1, history: [{ role: "user", content: "a" }] as const, state }, version: "1" };
}

Deno.test("encodeSession() keeps what a structured clone keeps, wherever the bytes lie when they are read", () => {
  const session = sessionOf({
    map: new Map([["a", Float64Array.of(1.5, NaN)]]),
    big: 12n,
    bytes: new Uint8Array(1000).fill(7),
    none: undefined,
  });
  const bytes = encodeSession(session);
  assertEquals(decodeSession(bytes), session);
  for (const offset of [1, 3, 8]) {
    const elsewhere = new Uint8Array(bytes.byteLength + 20);
    elsewhere.set(bytes, offset);
    assertEquals(decodeSession(elsewhere.subarray(offset, offset + bytes.byteLength)), session);
  }
});

Deno.test("encodeSession() refuses a state that cannot leave its process", async () => {
  await assertFails("internal", "cannot be saved", () => encodeSession(sessionOf({ f: () => {} })));
});

Deno.test("decodeSession() refuses what is no session", async () => {
  const bytes = encodeSession(sessionOf(1));
  for (const bad of [new Uint8Array(0), Uint8Array.of(2, ...bytes.subarray(1)), bytes.subarray(0, 20)]) {
    await assertFails("data_loss", "cannot be read", () => decodeSession(bad));
  }
});
