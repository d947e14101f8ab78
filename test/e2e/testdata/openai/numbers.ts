// No text in, none out.
import { defineModel } from "tensorlet";

export default defineModel({
  input: { dtype: "float32" },
  output: { dtype: "float32" },
  predict: (x) => x.data,
});
