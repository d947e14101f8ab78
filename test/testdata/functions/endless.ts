// A stream without an end that never awaits anything: only back pressure and the runtime can stop it.
import { defineModel } from "tensorlet";

export default defineModel({
  async *stream() {
    for (;;) yield "again ";
  },
});
