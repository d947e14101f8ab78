// Texts that a page must not take for its own.
import { defineModel, ModelError } from "tensorlet";

const HTML = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>";

export default defineModel({
  description: `Describes itself as ${HTML}`,
  input: { dtype: "string", description: HTML },
  params: { mode: { type: "string", enum: ["say", "fail"], default: "say", description: HTML } },
  predict(_, { params }) {
    if (params.mode === "fail") throw new ModelError("invalid_argument", `Failed with ${HTML}`);
    return { dtype: "string", shape: [1], data: [HTML] };
  },
  async *stream() {
    yield HTML;
  },
  async *chat() {
    yield HTML;
  },
});
