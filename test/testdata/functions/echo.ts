// Every input unchanged, in order.
import { defineModel } from "tensorlet";

export default defineModel({
  predict: (inputs) => inputs,
});
