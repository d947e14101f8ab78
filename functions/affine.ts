// y = 2x + 10 on a tensor of any numeric dtype, which it keeps; 64-bit integers stay exact.
import { defineModel, mapNumeric } from "tensorlet";

export default defineModel({
  description: "Doubles every element and adds 10, in any numeric dtype",
  input: { dtype: "any" },
  predict: (x) => mapNumeric(x, (v) => v * 2 + 10, (v) => v * 2n + 10n),
});
