// Its inputs, after delay_ms; gives up when the call is aborted.
import { defineModel } from "tensorlet";
import { delay } from "./_delay.ts";

export default defineModel({
  params: { delay_ms: { type: "integer", default: 2000, min: 0 } },
  async predict(inputs, ctx) {
    await delay(ctx.params.delay_ms, ctx.signal);
    return inputs;
  },
});
