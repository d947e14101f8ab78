import { assertEquals } from "tensorlet/assert";
import { withTurns } from "./turns.ts";

Deno.test("withTurns() gives every value, and the event loop a turn among values that never wait", async () => {
  const timer = Promise.withResolvers<"a turn">();
  setTimeout(() => timer.resolve("a turn"), 0);
  let hadTurn = false;
  timer.promise.then(() => hadTurn = true);
  // Ends when the timer has run: without a turn, never.
  async function* values() {
    for (let i = 0; !hadTurn; i++) yield i;
  }
  let count = 0;
  for await (const value of withTurns(values())) assertEquals(value, count++);
});

Deno.test("withTurns() ends its source with its reader", async () => {
  let isEnded = false;
  async function* values() {
    try {
      for (;;) yield 1;
    } finally {
      isEnded = true;
    }
  }
  for await (const _value of withTurns(values())) break;
  assertEquals(isEnded, true);
});
