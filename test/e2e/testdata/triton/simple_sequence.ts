// Triton's model of that name, as a conversation: the sum of the sequence's numbers.
import { defineModel } from "tensorlet";

export default defineModel({
  session: { init: () => ({ sum: 0 }) },
  async *chat({ content }, { session }) {
    session.state.sum += Number(content);
    yield `${session.state.sum}`;
  },
});
