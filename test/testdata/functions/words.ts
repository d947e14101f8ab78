// One string.
import { defineModel } from "tensorlet";

export default defineModel({
  output: { dtype: "string", shape: [1] },
  predict: () => ["h\u00e9llo \u{1f600}"],
});
