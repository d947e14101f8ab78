// Sessions that end 300 ms after their last stream. As predict: how often the session in `key` was closed.
import { defineModel } from "tensorlet";

const closed = new Map<string, string[]>();

export default defineModel({
  params: { key: { type: "string", default: "" } },
  session: { init: () => ({ count: 0 }), idleMs: 300 },
  output: { closed: { dtype: "float32", shape: [1] }, reasons: { dtype: "string" } },
  predict(_inputs, ctx) {
    const reasons = closed.get(ctx.params.key) ?? [];
    return {
      closed: Float32Array.of(reasons.length),
      reasons: { dtype: "string", shape: [reasons.length], data: reasons },
    };
  },
  async *chat(_message, ctx) {
    ctx.session.state.count++;
    yield `${ctx.session.state.count}`;
  },
  close(session, reason) {
    closed.set(session.id, [...(closed.get(session.id) ?? []), reason]);
  },
});
