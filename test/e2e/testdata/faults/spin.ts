// Never gives its thread back.
import { defineModel } from "tensorlet";

export default defineModel({
  predict(): never {
    for (;;);
  },
});
