import { assertEquals } from "tensorlet/assert";
import { batchCall, predictCall } from "../../test/harness/calls.ts";
import type { Call } from "../core/call.ts";
import { queueTimes } from "./queue_time.ts";

const MODEL = { name: "model", version: "1" };

function at(now: number, action: () => void): void {
  const real = performance.now;
  performance.now = () => now;
  try {
    action();
  } finally {
    performance.now = real;
  }
}

Deno.test("queueTimes() notes how long a call waited since its request, whichever copy of it starts", () => {
  const observer = queueTimes();
  const call = predictCall({ receivedAt: 100, trail: {} });
  at(130, () => observer.onStart!({ ...call }, MODEL, 5));
  assertEquals(call.trail, { queuedMs: 30 });
});

Deno.test("queueTimes() notes it for each call of a batch", () => {
  const observer = queueTimes();
  const members = [100, 120].map((receivedAt) => predictCall({ receivedAt, trail: {} }));
  const batch = batchCall([], { trail: {} });
  observer.onBatch!(batch, members);
  at(130, () => observer.onStart!({ ...batch }, MODEL, 5));
  assertEquals(members.map(({ trail }) => trail), [{ queuedMs: 30 }, { queuedMs: 10 }]);
});

Deno.test("queueTimes() notes nothing of a call whose request nobody saw", () => {
  const trail: Call["trail"] = {};
  queueTimes().onStart!(predictCall({ trail }), MODEL, 5);
  queueTimes().onStart!(predictCall({ receivedAt: 1 }), MODEL, 5);
  assertEquals(trail, {});
});
