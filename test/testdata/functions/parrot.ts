// "N: content", where N counts the session's messages.
import { defineModel } from "tensorlet";

export default defineModel({
  session: { init: () => ({ count: 0 }) },
  async *chat(message, ctx) {
    ctx.session.state.count++;
    yield `${ctx.session.state.count}: ${message.content}`;
  },
});
