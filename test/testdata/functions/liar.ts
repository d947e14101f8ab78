// Answers that break the declared output; the kind comes in the first value, for both services can send one.
import { type AnyTensor, defineModel } from "tensorlet";

export default defineModel({
  // deno-lint-ignore no-explicit-any
  predict([x]): any {
    switch (Number(x!.data[0])) {
      case 0:
        return undefined;
      case 1: // more elements than its shape says
        return { dtype: "float32", shape: [2], data: new Float32Array(5) };
      case 2: // another array than its dtype says
        return { dtype: "float64", shape: [1], data: new Float32Array(1) };
      case 3:
        return { dtype: "float32", shape: [-1], data: new Float32Array(0) };
      case 4:
        return "text";
      case 5: {
        const tensor: AnyTensor = { dtype: "float32", shape: [1], data: new Float32Array(1) };
        return [tensor, null];
      }
      default:
        return { dtype: "float128", shape: [1], data: new Float32Array(1) };
    }
  },
});
