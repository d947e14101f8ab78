import { assertEquals } from "tensorlet/assert";
import { predictCall } from "../../test/harness/calls.ts";
import { Stopwatch } from "./stopwatch.ts";

const MODEL = { name: "model", version: "1" };
const COMPLETED = { how: "completed" } as const;

// What an observer hears of a call whose steps come a second after each other.
function watch(steps: (watch: Stopwatch) => void): unknown[] {
  const heard: unknown[] = [];
  const real = performance.now;
  let now = 0;
  performance.now = () => now += 1000;
  try {
    const observer = {
      onStart: (...[, , queuedMs]: [unknown, unknown, number]) => heard.push(["start", queuedMs]),
      onEnd: (...[, , ms, { how }]: [unknown, unknown, number, { how: string }]) => heard.push(["end", ms, how]),
    };
    steps(new Stopwatch(observer, MODEL, predictCall()));
  } finally {
    performance.now = real;
  }
  return heard;
}

Deno.test("Stopwatch leaves out the time in which a final reply is delivered", () => {
  const heard = watch((stopwatch) => {
    stopwatch.start();
    stopwatch.onReply({ type: "tensors", index: 0, output: {}, final: true });
    performance.now();
    stopwatch.end(COMPLETED);
  });
  assertEquals(heard, [["start", 1000], ["end", 1000, "completed"]]);
});

Deno.test("Stopwatch counts until the end where nobody knows which reply is the last", () => {
  const heard = watch((stopwatch) => {
    stopwatch.start();
    stopwatch.onReply({ type: "delta", index: 0, text: "a" });
    performance.now();
    stopwatch.end({ how: "left" });
  });
  assertEquals(heard, [["start", 1000], ["end", 2000, "left"]]);
});

Deno.test("Stopwatch tells nothing of a call that had no instance", () => {
  assertEquals(watch((stopwatch) => stopwatch.end({ how: "failed", reason: undefined })), []);
});
