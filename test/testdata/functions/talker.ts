// A chat that can be looked into: "history" tells what it remembers, "slow N" speaks N pieces 50 ms apart, anything
// else comes back word by word. As predict: how many turns of the session in `key` started, were aborted, and ended.
import { defineModel } from "tensorlet";
import { delay } from "./_delay.ts";

const turns = new Map<string, { started: number; aborted: number; ended: number }>();

export default defineModel({
  params: {
    key: { type: "string", default: "" },
    delay_ms: { type: "integer", default: 50, min: 0 },
  },
  session: { init: () => ({ said: 0 }) },
  predict(_inputs, ctx) {
    const seen = turns.get(ctx.params.key) ?? { started: 0, aborted: 0, ended: 0 };
    return { dtype: "float32", shape: [3], data: Float32Array.of(seen.started, seen.aborted, seen.ended) };
  },
  async *chat(message, ctx) {
    const seen = turns.get(ctx.session.id) ?? { started: 0, aborted: 0, ended: 0 };
    turns.set(ctx.session.id, seen);
    seen.started++;
    const onAbort = () => seen.aborted++;
    ctx.signal.addEventListener("abort", onAbort);
    try {
      if (message.content === "history") {
        yield JSON.stringify(ctx.session.history);
      } else if (message.content === "nothing") {
        return;
      } else if (message.content === "emit") {
        await ctx.emit("one ");
        await ctx.emit("two");
      } else if (message.content.startsWith("slow ")) {
        const count = Number(message.content.slice(5));
        for (let i = 0; i < count; i++) {
          yield `s${i} `;
          await delay(ctx.params.delay_ms, ctx.signal);
        }
      } else {
        for (const word of message.content.split(" ")) yield `${word} `;
      }
    } finally {
      ctx.signal.removeEventListener("abort", onAbort); // the stream may be cancelled later
      seen.ended++;
    }
  },
});
