import { assertEquals } from "tensorlet/assert";
import { chatCall, predictCall, streamCall } from "../../test/harness/calls.ts";
import { numbersOf } from "../../test/harness/metrics.ts";
import type { Call } from "../core/call.ts";
import { ModelError } from "../core/error.ts";
import { RequestMetrics } from "./metrics_requests.ts";

const KNOWN = { name: "m", version: "2", revision: 1 };

function create() {
  return new RequestMetrics(({ model }: Call) => {
    if (model === "m") return KNOWN as never;
    throw new ModelError("not_found", `There is no model ${model}`);
  });
}

const delta = (text: string) => ({ type: "delta", index: 0, text }) as const;

Deno.test("RequestMetrics counts calls by what they are and how they ended", () => {
  const metrics = create();
  const meterOf = metrics.meterOf("inference_v1");
  meterOf(predictCall({ model: "m" }), 0).onEnd("ok", 3, undefined);
  meterOf(predictCall({ model: "m" }), 0).onEnd("internal", 7, new ModelError("internal", "no"));
  metrics.meterOf("oip_v2")(predictCall({ model: "m" }), 0).onEnd("cancelled", 1, undefined);
  const running = meterOf(chatCall("hi", { model: "m" }), 0);
  const numbers = numbersOf([...metrics.families()]);
  assertEquals(numbers("tensorlet_requests_total"), {
    "predict m 2 inference_v1 ok": 1,
    "predict m 2 inference_v1 internal": 1,
    "predict m 2 oip_v2 cancelled": 1,
  });
  assertEquals(numbers("tensorlet_requests_in_flight"), {
    "predict m 2 inference_v1": 0,
    "predict m 2 oip_v2": 0,
    "chat m 2 inference_v1": 1,
  });
  assertEquals(numbers("tensorlet_request_duration_seconds", "_sum"), {
    "predict m 2 inference_v1": 0.01,
    "predict m 2 oip_v2": 0.001,
    "chat m 2 inference_v1": 0,
  });
  assertEquals(metrics.counts, { started: 4, finished: 3, failed: 1 });
  running.onEnd("ok", 1, undefined);
  assertEquals(metrics.counts, { started: 4, finished: 4, failed: 1 });
});

Deno.test("RequestMetrics counts tokens, empty ones not, and the time to the first of them once", () => {
  const metrics = create();
  const meterOf = metrics.meterOf("p");
  const stream = meterOf(streamCall({ model: "m" }), performance.now());
  for (const text of ["", "a", "b"]) stream.onReply(delta(text));
  stream.onReply({ type: "tensors", index: 3, output: {} });
  const chat = meterOf(chatCall("hi", { model: "m" }), performance.now());
  chat.onReply({ type: "session", state: undefined });
  chat.onReply(delta(""));
  meterOf(predictCall({ model: "m" }), 0).onReply({ type: "tensors", index: 0, output: {} });
  const numbers = numbersOf([...metrics.families()]);
  assertEquals(numbers("tensorlet_tokens_total"), { "stream m 2 p": 3, "chat m 2 p": 0 });
  assertEquals(numbers("tensorlet_time_to_first_token_seconds", "_count"), { "stream m 2 p": 1, "chat m 2 p": 0 });
});

Deno.test("RequestMetrics makes no series of names that callers think up", () => {
  const metrics = create();
  const meterOf = metrics.meterOf("p");
  for (let i = 0; i < 10_000; i++) {
    const error = new ModelError("not_found", "There is none");
    meterOf(predictCall({ model: `m${i}`, version: `${i}` }), 0).onEnd("not_found", 1, error);
    metrics.failed("p", error);
    metrics.failed("p", new ModelError("not_found", `There is no model m${i}`));
  }
  const families = [...metrics.families()];
  assertEquals(numbersOf(families)("tensorlet_requests_total"), {
    "predict   p not_found": 10_000,
    "   p not_found": 10_000,
  });
  assertEquals(families.reduce((sum, { values }) => sum + values.length, 0) < 50, true);
});

Deno.test("RequestMetrics.statistics() adds up a version's calls, but for those whose callers left", () => {
  const metrics = create();
  assertEquals(metrics.statistics("m", "2"), {
    lastCallAt: 0,
    succeeded: { count: 0, ms: 0 },
    failed: { count: 0, ms: 0 },
  });
  const [a, b] = ["a", "b"].map((protocol) => metrics.meterOf(protocol));
  const call = predictCall({ model: "m" });
  a!(call, 0).onEnd("ok", 3, undefined);
  b!(call, 0).onEnd("ok", 4, undefined);
  a!(streamCall({ model: "m" }), 0).onEnd("aborted", 5, undefined);
  a!(call, 0).onEnd("cancelled", 6, undefined);
  a!(predictCall({ model: "other" }), 0).onEnd("not_found", 7, undefined);
  const { lastCallAt, ...counts } = metrics.statistics("m", "2");
  assertEquals(counts, { succeeded: { count: 2, ms: 7 }, failed: { count: 1, ms: 5 } });
  assertEquals(lastCallAt > 0, true);
});
