// [sum] of each vector.
import { defineModel } from "tensorlet";

export default defineModel({
  input: { dtype: "float32", shape: [-1] },
  output: { dtype: "float32", shape: [1] },
  batch: (items) => items.map(({ input }) => Float32Array.of(input.data.reduce((a, b) => a + b, 0))),
});
