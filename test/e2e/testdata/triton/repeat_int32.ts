// Triton's model of that name: an answer for each element.
import { defineModel } from "tensorlet";

export default defineModel({
  input: { IN: { dtype: "int32", shape: [-1] } },
  output: { OUT: { dtype: "int32", shape: [1] } },
  async *stream({ IN }) {
    for (const value of IN.data) {
      await Promise.resolve();
      yield { OUT: Int32Array.of(value) };
    }
  },
});
