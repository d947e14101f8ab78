import { assertEquals, assertGreater } from "tensorlet/assert";
import { assertFails, batchCall, batchItem, collect, predictCall } from "../../test/harness/calls.ts";
import type { Reply } from "../core/call.ts";
import { ModelError } from "../core/error.ts";
import { Statistics } from "./statistics.ts";

async function* answers(count: number): AsyncGenerator<Reply, void, undefined> {
  for (let index = 0; index < count; index++) yield { type: "tensors", index, output: {} };
}

async function* fails(code: "internal" | "cancelled"): AsyncGenerator<Reply, void, undefined> {
  yield* answers(1);
  throw new ModelError(code, "no");
}

const countsOf = (statistics: Statistics) => {
  const { succeeded, failed, computed, executions } = statistics.of("model", "1");
  return [succeeded.count, failed.count, computed.count, executions];
};

Deno.test("Statistics counts what succeeds and what fails, and not what its client leaves", async () => {
  const statistics = new Statistics(() => "1");
  assertEquals(statistics.of("model", "1").lastCallAt, 0);
  await collect(statistics.calls(() => answers(1))(predictCall()));
  await assertFails("internal", "no", () => collect(statistics.calls(() => fails("internal"))(predictCall())));
  await assertFails("cancelled", "no", () => collect(statistics.calls(() => fails("cancelled"))(predictCall())));
  for await (const _ of statistics.calls(() => answers(2))(predictCall())) break;
  assertEquals(countsOf(statistics), [1, 1, 0, 0]);
  assertGreater(statistics.of("model", "1").lastCallAt, 0);
});

Deno.test("Statistics counts a batch as one execution of all its items", async () => {
  const statistics = new Statistics(() => "1");
  await collect(statistics.executions(() => answers(3))(batchCall(["a", "b", "c"].map((id) => batchItem(id)))));
  await collect(statistics.executions(() => answers(1))(predictCall()));
  assertEquals(countsOf(statistics), [0, 0, 4, 2]);
});

Deno.test("Statistics keeps the versions of a function apart", async () => {
  const statistics = new Statistics(({ version }) => version ?? "2");
  for (const version of ["1", undefined, "2"]) {
    await collect(statistics.calls(() => answers(1))(predictCall({ version })));
  }
  assertEquals(["1", "2", "3"].map((version) => statistics.of("model", version).succeeded.count), [1, 2, 0]);
});
