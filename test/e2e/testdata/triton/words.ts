import { defineModel } from "tensorlet";

export default defineModel({
  input: {},
  params: { prompt: { type: "string", default: "a b c" } },
  async *stream(_input, { params }) {
    for (const word of params.prompt.split(" ")) {
      await Promise.resolve();
      yield `${word} `;
    }
  },
});
