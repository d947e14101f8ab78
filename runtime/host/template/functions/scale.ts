import { defineModel } from "tensorlet";

export default defineModel({
  description: "Multiplies by a factor",
  input: { dtype: "float32", shape: [-1, 3] }, // -1 = any
  output: { dtype: "float32", shape: [-1, 3] },
  params: {
    factor: { type: "number", default: 2, description: "Each value is multiplied by it" },
  },
  predict: (x, ctx) => x.data.map((v) => v * ctx.params.factor),
});
