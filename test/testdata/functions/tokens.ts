// The ways in which a stream can end. `kind` says which.
import { defineModel } from "tensorlet";

export default defineModel({
  params: {
    kind: {
      type: "string",
      enum: ["plain", "none", "early", "emit", "surrogate", "tensor", "text", "empty_final"],
      default: "plain",
    },
    count: { type: "integer", default: 3, min: 0 },
  },
  async *stream(_inputs, ctx) {
    const { kind, count } = ctx.params;
    switch (kind) {
      case "none":
        return;
      case "early": // what follows a final token must never be sent
        yield "a";
        yield { token: "b", final: true };
        yield "c";
        return;
      case "emit":
        for (let i = 0; i < count; i++) await ctx.emit(`e${i}`);
        return;
      case "surrogate": // half a character, which UTF-8 cannot carry
        yield "\ud83d";
        yield "ok";
        return;
      case "tensor":
        yield { dtype: "float32", shape: [2], data: Float32Array.of(1, 2) };
        return;
      case "text":
        yield { dtype: "string", shape: [1], data: ["word"] };
        return;
      case "empty_final":
        yield "a";
        yield { token: "", final: true };
        return;
      default: // no token is marked: the runtime ends the stream
        for (let i = 0; i < count; i++) yield `p${i}`;
    }
  },
});
