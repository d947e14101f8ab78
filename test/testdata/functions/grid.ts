// A declared input with one unknown dim, an optional second one, and typed params: what the runtime checks for a handler.
import { defineModel } from "tensorlet";

export default defineModel({
  input: {
    cells: { dtype: "float32", shape: [-1, 4] },
    mask: { dtype: "bool", shape: [-1], optional: true },
  },
  output: {
    scaled: { dtype: "float32", shape: [-1, 4] },
    dims: { dtype: "int32", shape: [2] },
  },
  params: {
    factor: { type: "integer", default: 2, min: 1, max: 10 },
    negate: { type: "boolean", default: false },
    mode: { type: "string", enum: ["fast", "exact"], default: "fast" },
  },
  predict({ cells }, ctx) {
    const factor = ctx.params.negate ? -ctx.params.factor : ctx.params.factor;
    return {
      scaled: { dtype: "float32", shape: cells.shape, data: cells.data.map((v) => v * factor) },
      dims: Int32Array.from(cells.shape),
    };
  },
});
