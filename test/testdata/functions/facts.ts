// What a handler is told about its call, one output each.
import { defineModel } from "tensorlet";

export default defineModel({
  output: {
    max_tokens: { dtype: "float64", shape: [1] },
    remaining_ms: { dtype: "float64", shape: [1] },
    big: { dtype: "int64", shape: [2] },
    request_id: { dtype: "string", shape: [1] },
    params: { dtype: "string", shape: [1] },
  },
  predict: (_inputs, ctx) => ({
    max_tokens: Float64Array.of(ctx.maxTokens ?? -1),
    remaining_ms: Float64Array.of(ctx.remainingMs()),
    big: BigInt64Array.of(16777217n, -9007199254740993n),
    request_id: [ctx.requestId],
    params: [JSON.stringify(Object.entries(ctx.params).sort())],
  }),
  async *stream(_inputs, ctx) {
    yield `${ctx.remainingMs()}`;
    yield ctx.requestId;
  },
});
