// Takes two seconds to load.
import { defineModel } from "tensorlet";

export default defineModel({
  load: () => new Promise<{ ready: true }>((resolve) => setTimeout(() => resolve({ ready: true }), 2000)),
  predict: (inputs) => inputs,
});
