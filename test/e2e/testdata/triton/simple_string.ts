// Triton's model of that name: numbers as texts.
import { defineModel } from "tensorlet";

const tensor = { dtype: "string", shape: [-1, 16] } as const;

export default defineModel({
  input: { INPUT0: tensor, INPUT1: tensor },
  output: { OUTPUT0: tensor, OUTPUT1: tensor },
  predict: ({ INPUT0: a, INPUT1: b }) => ({
    OUTPUT0: { ...a, data: a.data.map((v, i) => `${Number(v) + Number(b.data[i])}`) },
    OUTPUT1: { ...a, data: a.data.map((v, i) => `${Number(v) - Number(b.data[i])}`) },
  }),
});
