// Several inputs of all kinds, which it gives back.
import { defineModel } from "tensorlet";

export default defineModel({
  input: {
    ids: { dtype: "int64", shape: [-1, 2] },
    flags: { dtype: "bool" },
    words: { dtype: "string", shape: [2] },
    scale: { dtype: "float32", shape: [1], optional: true, description: "May be left out" },
  },
  output: { ids: { dtype: "int64" }, flags: { dtype: "bool" }, words: { dtype: "string" } },
  predict: ({ ids, flags, words }) => ({ ids, flags, words }),
});
