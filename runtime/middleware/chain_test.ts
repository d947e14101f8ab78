import { assertEquals } from "tensorlet/assert";
import {
  assertFails,
  collect,
  executorOf,
  floats,
  predictCall,
  recordLog,
  streamCall,
} from "../../test/harness/calls.ts";
import { FakeClock } from "../../test/harness/clock.ts";
import type { Call, Interceptor } from "../core/call.ts";
import { defineModel, resolveModel } from "../core/define.ts";
import { chain } from "./chain.ts";
import { deadline } from "./deadline.ts";
import { DEFAULT_REPLAY_LIMITS, Replays } from "./replay.ts";
import { Sessions } from "./session.ts";
import { MemorySessionStore } from "./session_store.ts";

const definition = defineModel({
  input: { dtype: "float32", shape: [1] },
  output: { dtype: "float32" },
  predict: ({ data }) => data,
});
const model = resolveModel(definition, "model");

function chained(interceptors: readonly Interceptor[], maxInFlight = 1, maxQueue = 0) {
  const { log, records } = recordLog();
  const sessions = new Sessions({
    store: new MemorySessionStore(),
    maxSessions: 1,
    pin: () => ({ version: "1", revision: 1, release() {} }),
    boundsOf: () => model.session,
    onEnd: () => Promise.resolve(),
    log,
  });
  const unaryTimeoutMs = 1000;
  const replays = new Replays({ ...DEFAULT_REPLAY_LIMITS, deadline: deadline({ unaryTimeoutMs }), log });
  const invoke = chain(executorOf(definition), {
    log,
    find: () => ({ ...model, state: "ready", revision: 1 }),
    roomOf: () => ({ instances: 1, hasRoom: true }),
    sessions,
    replays,
    interceptors,
    maxInFlight,
    maxQueue,
    unaryTimeoutMs,
  })({ protocol: "inference", meterOf: () => ({ onReply() {}, onEnd() {} }) });
  return { invoke, records, replays };
}

Deno.test("chain() runs interceptors outermost first, around the limits, and checks before the limits", async () => {
  const seen: string[] = [];
  const named = (name: string): Interceptor => (next) => (call) => (seen.push(name), next(call));
  const { invoke } = chained([named("a"), named("b")], 0);
  await assertFails(
    "resource_exhausted",
    "The server is busy",
    () => collect(invoke(predictCall({ input: floats(1) }))),
  );
  await assertFails("invalid_argument", "input 0 is missing", () => collect(invoke(predictCall())));
  assertEquals(seen, ["a", "b", "a", "b"]);
});

Deno.test("chain() ends a call that waits for its place at its deadline, the server's own included", async () => {
  using clock = new FakeClock();
  const { invoke } = chained([], 1, 1);
  const running = invoke(predictCall({ input: floats(1) }))[Symbol.asyncIterator]();
  await running.next();
  const waiting = collect(invoke(predictCall({ input: floats(1) }))).then(() => "ok", (error) => error.code);
  await clock.advance(1000);
  assertEquals(await waiting, "deadline_exceeded");
  await running.return?.();
  assertEquals(clock.armed, 0);
});

Deno.test("chain() checks a call before its function sees it, and logs what became of it", async () => {
  const { invoke, records } = chained([]);
  await assertFails("invalid_argument", "got shape [2]", () => collect(invoke(predictCall({ input: floats(1, 2) }))));
  await assertFails("deadline_exceeded", "", () => collect(invoke(predictCall({ deadline: 1 }))));
  assertEquals((await collect(invoke(predictCall({ input: floats(1) })))).length, 1);
  assertEquals(records.map(({ fields }) => fields.code), ["invalid_argument", "deadline_exceeded", "ok"]);
});

Deno.test("chain() lets an interceptor change the call and see its failure", async () => {
  const failures: unknown[] = [];
  const fixing: Interceptor = (next) =>
    async function* (call: Call) {
      try {
        yield* next({ ...call, input: floats(1, 2, 3) } as Call);
      } catch (error) {
        failures.push((error as { code?: string }).code);
        yield* next({ ...call, input: floats(7) } as Call);
      }
    };
  const [reply] = await collect(chained([fixing]).invoke(predictCall()));
  assertEquals(reply?.type === "tensors" && [...reply.output["0"]!.data as Float32Array], [7]);
  assertEquals(failures, ["invalid_argument"]);
});

Deno.test("chain() gives a reader that comes back no place of its own", async () => {
  using _clock = new FakeClock();
  const { invoke, replays } = chained([]);
  const input = floats(1);
  await collect(invoke(streamCall({ id: "r", resumable: true, input })));
  const running = invoke(predictCall({ input }))[Symbol.asyncIterator]();
  await running.next();
  assertEquals((await collect(invoke(streamCall({ id: "r", resumeFrom: 0 })))).length, 1);
  await assertFails("resource_exhausted", "", () => collect(invoke(streamCall({ id: "s", resumable: true, input }))));
  await running.return?.();
  assertEquals((await collect(invoke(streamCall({ id: "s", resumable: true, input })))).length, 1);
  replays.close();
});
