// A predict handler alone: BatchPredict must fall back to it, row by row.
import { defineModel } from "tensorlet";

export default defineModel({
  input: { dtype: "float32", shape: [3] },
  output: { dtype: "float32", shape: [3] },
  predict: (input) => input.data.map((v) => v + 1),
});
