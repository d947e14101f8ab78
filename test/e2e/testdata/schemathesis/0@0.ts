// Takes whatever it is given, and gives it back: with every handler, so that every path leads to it. Name and version are
// what schemathesis tries first: else most of what it sends would be for functions that there are not.
import { defineModel } from "tensorlet";

export default defineModel({
  predict: (inputs) => inputs,
  async *stream(_input, ctx) {
    yield `${ctx.params.prompt ?? ""}`;
  },
  async *chat(message) {
    yield message.content;
  },
});
