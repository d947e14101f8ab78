// x * 2 + 10 on a numeric tensor of any dtype, which it keeps.
import { defineModel, mapNumeric } from "tensorlet";

export default defineModel({
  predict: ([x]) => mapNumeric(x!, (v) => v * 2 + 10, (v) => v * 2n + 10n),
});
