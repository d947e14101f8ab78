// Takes memory until there is none, for a second at least.
import { defineModel } from "tensorlet";

export default defineModel({
  async predict() {
    const all: unknown[] = [];
    for (;;) {
      for (let i = 0; i < 1_000; i++) all.push(new Array(100).fill({}));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  },
});
