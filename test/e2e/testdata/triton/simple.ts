// Triton's model of that name: the sum and the difference of two tensors.
import { defineModel } from "tensorlet";

const tensor = { dtype: "int32", shape: [-1, 16] } as const;

export default defineModel({
  input: { INPUT0: tensor, INPUT1: tensor },
  output: { OUTPUT0: tensor, OUTPUT1: tensor },
  predict: ({ INPUT0: a, INPUT1: b }) => ({
    OUTPUT0: { ...a, data: a.data.map((v, i) => v + b.data[i]!) },
    OUTPUT1: { ...a, data: a.data.map((v, i) => v - b.data[i]!) },
  }),
});
