// The one function of its folder: a call may leave its name empty.
import { defineModel } from "tensorlet";

export default defineModel({
  predict: (inputs) => inputs,
  async *stream() {
    yield "only";
  },
});
