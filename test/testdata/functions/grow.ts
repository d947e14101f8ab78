// As many zeros (float32) as the first value says: an answer can be much larger than its question.
import { defineModel } from "tensorlet";

export default defineModel({
  predict([x]) {
    const count = Number(x!.data[0]);
    return { dtype: "float32", shape: [count], data: new Float32Array(count) };
  },
});
