// Ten tokens, then an error: the reader must get all ten first.
import { defineModel } from "tensorlet";

export default defineModel({
  async *stream() {
    for (let i = 0; i < 10; i++) yield `t${i}`;
    throw new Error("secret detail");
  },
});
