import { assertEquals } from "tensorlet/assert";
import {
  assertFails,
  batchCall,
  batchItem,
  chatCall,
  collect,
  executorOf,
  floats,
  predictCall,
} from "../../test/harness/calls.ts";
import type { Call, Invoke } from "../core/call.ts";
import type { CatalogEntry } from "../core/catalog.ts";
import { type AnyModel, defineModel, resolveModel } from "../core/define.ts";
import { type AnyTensor, tensor } from "../core/tensor.ts";
import { validate } from "./validate.ts";

const model = defineModel({
  input: { dtype: "float32", shape: [2] },
  output: { dtype: "float32" },
  params: { top: { type: "integer", default: 1 } },
  predict: ({ data }) => data,
  async *chat() {},
});

function checked(definition: AnyModel): { readonly invoke: Invoke; readonly calls: Call[] } {
  const calls: Call[] = [];
  const entry: CatalogEntry = { ...resolveModel(definition, "model"), state: "ready", revision: 1 };
  const execute = executorOf(definition);
  const next: Invoke = (call) => (calls.push(call), execute(call));
  return { invoke: validate(() => entry)(next), calls };
}

Deno.test("validate() converts params and hands the call on", async () => {
  const { invoke, calls } = checked(model);
  await collect(invoke(predictCall({ input: floats(1, 2), params: { top: "3" } })));
  await collect(invoke(chatCall("x")));
  assertEquals(calls.map(({ params }) => ({ ...params })), [{ top: 3 }, { top: 1 }]);
});

Deno.test("validate() refuses a bad call without running it", async () => {
  const { invoke, calls } = checked(model);
  await assertFails("invalid_argument", "input 0: got shape [3], wanted [2]", () => {
    invoke(predictCall({ input: floats(1, 2, 3) }));
  });
  await assertFails("invalid_argument", 'param "top": got "x"', () => invoke(chatCall("x", { params: { top: "x" } })));
  await assertFails("invalid_argument", "input 0 is missing", () => invoke(predictCall()));
  assertEquals(calls, []);
});

Deno.test("validate() lets an untyped function's tensors and params through", async () => {
  const { invoke, calls } = checked(defineModel({ predict: (inputs) => inputs }));
  const input = { "0": tensor("string", ["a"]) as AnyTensor };
  await collect(invoke(predictCall({ input, params: { any: "thing" } })));
  assertEquals(calls.map(({ params }) => params), [{ any: "thing" }]);
});

Deno.test("validate() fails only the bad items of a batch, and keeps every index", async () => {
  const { invoke, calls } = checked(model);
  const items = [
    batchItem("a", floats(1, 2)),
    batchItem("b", floats(1)),
    batchItem("c", floats(3, 4), { top: "x" }),
    batchItem("d", floats(5, 6)),
  ];
  const replies = await collect(invoke(batchCall(items)));
  const outcomes = replies.map((reply) =>
    reply.type === "failure" ? [reply.index, reply.error.code] : reply.type === "tensors" ? [reply.index, "ok"] : []
  );
  assertEquals(outcomes, [[1, "invalid_argument"], [2, "invalid_argument"], [0, "ok"], [3, "ok"]]);
  const [call] = calls;
  assertEquals(call?.kind === "batch" && call.items.map(({ id, params }) => [id, params.top]), [["a", 1], ["d", 1]]);
});

Deno.test("validate() does not run a batch that has no good item", async () => {
  const { invoke, calls } = checked(model);
  const replies = await collect(invoke(batchCall([batchItem("a")])));
  assertEquals([replies.length, replies[0]?.type, calls.length], [1, "failure", 0]);
  assertEquals(await collect(invoke(batchCall([]))), []);
});
