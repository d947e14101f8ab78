import { assert, assertEquals } from "tensorlet/assert";
import { assertFails, floats, NEVER, predictCall } from "../../test/harness/calls.ts";
import type { CatalogEntry } from "../core/catalog.ts";
import { defineModel, resolveModel } from "../core/define.ts";
import { callBase, invokePredict, metadataParams, onlyRequest, type RpcContext } from "./adapter.ts";

const model = defineModel({ params: { topK: { type: "integer" } }, predict: () => [] });
const entry: CatalogEntry = { ...resolveModel(model, "m", "3"), state: "ready", revision: 1 };

Deno.test("metadataParams() reads the keys that begin with param-", () => {
  const metadata = new Headers({ "param-a": "1", "param-topk": "2", "Param-B": "3", "params": "4", "xparam-c": "5" });
  assertEquals({ ...metadataParams(metadata, entry) }, { a: "1", b: "3", topK: "2" });
});

Deno.test("callBase() names the function that was found, takes max_tokens 0 for none, and knows when it was", () => {
  const rpc: RpcContext = {
    id: "r",
    signal: NEVER,
    draining: NEVER,
    deadline: 5,
    metadata: new Headers(),
    responseMetadata: new Headers(),
    trailers: new Headers(),
    decodedAt: () => 0,
    maxMessageBytes: 1,
  };
  const before = performance.now();
  const { id, model, version, revision, deadline, maxTokens, receivedAt } = callBase(rpc, entry, {});
  assert(before <= receivedAt! && receivedAt! <= performance.now());
  assertEquals([id, model, version, revision, deadline, maxTokens], ["r", "m", "3", 1, 5, undefined]);
  assertEquals(callBase(rpc, entry, {}, 4_294_967_295).maxTokens, 4_294_967_295);
});

Deno.test("onlyRequest() gives the first request, and says when there is none", async () => {
  const requests = async function* (...all: readonly number[]) {
    yield* all;
  };
  assertEquals(await onlyRequest(requests(1)), 1);
  await assertFails("invalid_argument", "the client sent none", () => onlyRequest(requests()));
});

Deno.test("invokePredict() ends the call only when the answer was taken: until then it is in flight", async () => {
  const output = floats(1);
  let ended = false;
  const answer = async function* () {
    yield { type: "tensors", index: 0, output } as const;
    ended = true;
  };
  for await (const got of invokePredict(answer, predictCall())) assertEquals([got, ended], [output, false]);
  assertEquals(ended, true);
});
