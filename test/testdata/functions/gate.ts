// Takes one vector and then nothing more until the call is aborted: a flooding client has to wait.
import { defineModel } from "tensorlet";
import { delay } from "./_delay.ts";

export default defineModel({
  output: { dtype: "float32", shape: [1] },
  batching: { maxSize: 1 },
  async batch(items, ctx) {
    await delay(60_000, ctx.signal);
    return items.map(() => new Float32Array(1));
  },
});
