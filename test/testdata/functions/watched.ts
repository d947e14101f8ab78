// Remembers by `key` what became of its calls, so that a client can ask afterwards (kind "report").
import { defineModel } from "tensorlet";
import { delay } from "./_delay.ts";

interface Seen {
  started: number;
  yielded: number;
  aborted: number;
  ended: number;
}

const calls = new Map<string, Seen>();

function seen(key: string): Seen {
  const known = calls.get(key) ?? { started: 0, yielded: 0, aborted: 0, ended: 0 };
  calls.set(key, known);
  return known;
}

export default defineModel({
  params: {
    key: { type: "string", default: "" },
    kind: { type: "string", enum: ["report", "wait"], default: "report" },
    delay_ms: { type: "integer", default: 0, min: 0 },
  },
  async predict(_inputs, ctx) {
    const call = seen(ctx.params.key);
    if (ctx.params.kind === "wait") {
      call.started++;
      ctx.signal.addEventListener("abort", () => call.aborted++, { once: true });
      try {
        await delay(30_000, ctx.signal);
      } finally {
        call.ended++;
      }
    }
    return {
      dtype: "float32",
      shape: [4],
      data: Float32Array.of(call.started, call.yielded, call.aborted, call.ended),
    };
  },
  async *stream(_inputs, ctx) {
    const call = seen(ctx.params.key);
    call.started++;
    ctx.signal.addEventListener("abort", () => call.aborted++, { once: true });
    try {
      for (let i = 0; i < (ctx.maxTokens ?? Infinity); i++) {
        if (i > 0 && ctx.params.delay_ms > 0) await delay(ctx.params.delay_ms, ctx.signal);
        call.yielded++;
        yield `w${i}`;
      }
    } finally {
      call.ended++;
    }
  },
});
