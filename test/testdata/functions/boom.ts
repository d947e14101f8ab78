// Throws in every mode; nothing of the text may reach a client.
import { defineModel } from "tensorlet";

function fail(): never {
  throw new Error("secret detail");
}

export default defineModel({
  predict: fail,
  // deno-lint-ignore require-yield
  async *stream() {
    fail();
  },
  batch: fail,
  // deno-lint-ignore require-yield
  async *chat() {
    fail();
  },
});
