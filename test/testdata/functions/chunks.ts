// How many vectors came together; a first element of -1 is refused, with that item's own error.
import { defineModel, ModelError } from "tensorlet";
import { delay } from "./_delay.ts";

export default defineModel({
  input: { dtype: "float32", shape: [2] },
  output: { dtype: "float32", shape: [1] },
  batching: { maxSize: 4 },
  async batch(items, ctx) {
    await delay(5, ctx.signal); // so that vectors which are already here can gather
    return items.map(({ input }) =>
      input.data[0] === -1 ? new ModelError("failed_precondition", "Cannot take -1") : Float32Array.of(items.length)
    );
  },
});
