// What metrics cost a call: the chain with an inline function, with and without them, in blocks that take turns.
//
//   deno run -A test/bench/metrics_cost.ts [ROUNDS]
import { deadline } from "../../runtime/middleware/deadline.ts";
import { type AnyModel, defineModel, resolveModel } from "../../runtime/core/define.ts";
import type { Call, Invoke } from "../../runtime/core/call.ts";
import { Registry } from "../../runtime/core/registry.ts";
import { DEFAULT_LIMITS } from "../../runtime/assembly.ts";
import { chain } from "../../runtime/middleware/chain.ts";
import { InstanceMetrics } from "../../runtime/middleware/metrics_instances.ts";
import { RequestMetrics } from "../../runtime/middleware/metrics_requests.ts";
import { Replays } from "../../runtime/middleware/replay.ts";
import { Sessions } from "../../runtime/middleware/session.ts";
import { MemorySessionStore } from "../../runtime/middleware/session_store.ts";
import { inlinePool } from "../../runtime/workers/inline.ts";
import { floats, predictCall, SILENT, streamCall } from "../harness/calls.ts";
import { quantile } from "./suite/stats.ts";

const ROUNDS = Number(Deno.args[0] ?? 60);
const TOKENS = 100;
const calls: Readonly<Record<string, { readonly count: number; readonly make: () => Call }>> = {
  "predict": { count: 2_000, make: () => predictCall({ ...base(), input: floats(1, 2, 3) }) },
  [`stream of ${TOKENS} tokens`]: { count: 50, make: () => streamCall({ ...base(), input: floats(1) }) },
};

function base() {
  return { model: "model", version: "1", revision: 1, receivedAt: performance.now() };
}

const model = defineModel({
  input: { dtype: "float32" },
  output: { dtype: "float32" },
  predict: ({ data }) => data,
  async *stream() {
    for (let i = 0; i < TOKENS; i++) yield "a";
  },
});

async function createInvoke(definition: AnyModel, isMetered: boolean): Promise<Invoke> {
  const registry = new Registry(SILENT);
  const observer = isMetered ? new InstanceMetrics() : undefined;
  registry.add(inlinePool(resolveModel(definition, "model"), { observer, log: SILENT }));
  await registry.loadWarm();
  const find = (call: Call) => registry.entryOf(call);
  const none = { onReply() {}, onEnd() {} };
  const invokeFor = chain(registry.invoke, {
    ...DEFAULT_LIMITS,
    find,
    roomOf: (call) => registry.roomOf(call),
    sessions: new Sessions({
      store: new MemorySessionStore(),
      maxSessions: 1,
      pin: (call) => registry.pin(call),
      boundsOf: (call) => registry.sessionBoundsOf(call),
      onEnd: () => Promise.resolve(),
      log: SILENT,
    }),
    replays: new Replays({ ...DEFAULT_LIMITS, deadline: deadline(DEFAULT_LIMITS), log: SILENT }),
    interceptors: [],
    log: SILENT,
  });
  const meterOf = isMetered ? new RequestMetrics(find).meterOf("bench") : () => none;
  return invokeFor({ protocol: "bench", meterOf });
}

// Microseconds a call.
async function block(invoke: Invoke, count: number, make: () => Call): Promise<number> {
  const start = performance.now();
  for (let i = 0; i < count; i++) for await (const _ of invoke(make()));
  return (performance.now() - start) / count * 1000;
}

const [without, with_] = [await createInvoke(model, false), await createInvoke(model, true)];
for (const [name, { count, make }] of Object.entries(calls)) {
  const times: { readonly without: number; readonly with: number }[] = [];
  for (let round = -5; round < ROUNDS; round++) {
    const isFirst = round % 2 === 0; // neither is always the one that pays for garbage
    const first = await block(isFirst ? without : with_, count, make);
    const second = await block(isFirst ? with_ : without, count, make);
    if (round >= 0) times.push(isFirst ? { without: first, with: second } : { without: second, with: first });
  }
  const ratios = times.map((time) => time.with / time.without);
  const at = (share: number) => quantile(ratios, share).toFixed(2);
  const [bare, metered] = [
    quantile(times.map((time) => time.without), 0.5),
    quantile(times.map((time) => time.with), 0.5),
  ];
  console.log(
    `${name}: ${bare.toFixed(2)} µs, with metrics ${metered.toFixed(2)} µs; ratio ${at(0.5)} (${at(0.25)} to ${
      at(0.75)
    })`,
  );
}
