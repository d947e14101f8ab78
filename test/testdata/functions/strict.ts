// Refuses the first vector at once, while the client still holds the stream open.
import { defineModel, ModelError } from "tensorlet";

export default defineModel({
  output: { dtype: "float32", shape: [1] },
  batching: { maxSize: 1 },
  batch: (items) => items.map(() => new ModelError("out_of_range", "Cannot take any vector")),
});
