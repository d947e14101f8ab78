// Its own version number.
import { defineModel } from "tensorlet";

export default defineModel({
  predict: () => ({ dtype: "float32", shape: [1], data: Float32Array.of(1) }),
});
