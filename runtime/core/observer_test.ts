import { assertEquals } from "tensorlet/assert";
import { batchCall, predictCall } from "../../test/harness/calls.ts";
import { ModelError } from "./error.ts";
import { type Observer, observers } from "./observer.ts";

Deno.test("observers() tells each of them everything, in order, and those that do not listen nothing", () => {
  const heard: string[] = [];
  const listening = (name: string): Required<Observer> => ({
    onBatch: ({ kind }, members) => heard.push(`${name} ${kind} of ${members.length}`),
    onStart: ({ id }, model, queuedMs) => heard.push(`${name} ${id} of ${model.name} after ${queuedMs}`),
    onEnd: ({ id }, _model, ms, { how }) => heard.push(`${name} ${id} ${how} after ${ms}`),
    onLoaded: (_model, ms, waiting) => heard.push(`${name} loaded in ${ms} for ${waiting.length}`),
    onLoadFailed: (_model, ms, reason, waiting) => heard.push(`${name} ${reason} in ${ms} for ${waiting.length}`),
    onDied: (_model, { message }) => heard.push(`${name} ${message}`),
  });
  const all = observers(listening("a"), {}, listening("b"));
  const model = { name: "m", version: "1" };
  const call = predictCall({ id: "c" });
  all.onBatch?.(batchCall([]), [call]);
  all.onStart?.(call, model, 1);
  all.onEnd?.(call, model, 2, { how: "left" });
  all.onLoaded?.(model, 3, [call]);
  all.onLoadFailed?.(model, 4, "no weights", [call]);
  all.onDied?.(model, new ModelError("unavailable", "died"));
  const each = (name: string) => [
    `${name} batch of 1`,
    `${name} c of m after 1`,
    `${name} c left after 2`,
    `${name} loaded in 3 for 1`,
    `${name} no weights in 4 for 1`,
    `${name} died`,
  ];
  assertEquals(heard, each("a").flatMap((line, i) => [line, each("b")[i]!]));
});
