// A token every 100 ms.
import { defineModel } from "tensorlet";

export default defineModel({
  async *stream(_inputs, ctx) {
    for (let i = 0; i < (ctx.maxTokens ?? 5); i++) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      yield `t${i}`;
    }
  },
});
