// The first input's dims.
import { defineModel } from "tensorlet";

export default defineModel({
  predict: ([x]) => ({ dtype: "int32", shape: [x!.shape.length], data: Int32Array.from(x!.shape) }),
});
