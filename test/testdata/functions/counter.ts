// "t0", "t1", ...: max_tokens of them, 5 by default, the last marked final.
import { defineModel } from "tensorlet";
import { delay } from "./_delay.ts";

export default defineModel({
  params: { delay_ms: { type: "integer", default: 0, min: 0, description: "Pause between two tokens" } },
  async *stream(_inputs, ctx) {
    const count = ctx.maxTokens ?? 5;
    for (let i = 0; i < count; i++) {
      if (i > 0 && ctx.params.delay_ms > 0) await delay(ctx.params.delay_ms, ctx.signal);
      yield i === count - 1 ? { token: `t${i}`, final: true } : `t${i}`;
    }
  },
});
