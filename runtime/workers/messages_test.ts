import { assert, assertEquals, assertFalse, assertInstanceOf, assertStrictEquals } from "tensorlet/assert";
import { batchCall, batchItem, chatCall, floats, NEVER, predictCall } from "../../test/harness/calls.ts";
import type { Call, Reply } from "../core/call.ts";
import { ModelError } from "../core/error.ts";
import { type AnyTensor, tensor } from "../core/tensor.ts";
import { createContextKey, NO_VALUES, withValue } from "../core/values.ts";
import {
  bytesOf,
  cloneable,
  fromCallData,
  fromErrorData,
  fromReplyData,
  toCallData,
  toErrorData,
  toReplyData,
} from "./messages.ts";

const throughMessage = (error: ModelError) => fromErrorData(structuredClone(toErrorData(error)));

Deno.test("fromErrorData() gives the failure that toErrorData() was given, its cause as name, text and stack", () => {
  const cause = new TypeError("x is undefined");
  const error = throughMessage(new ModelError("aborted", "Cannot go on", { details: { retryAfterMs: 3 }, cause }));
  assertInstanceOf(error, ModelError);
  assertEquals([error.code, error.message, error.details], ["aborted", "Cannot go on", { retryAfterMs: 3 }]);
  assertInstanceOf(error.cause, Error);
  assertEquals([error.cause.name, error.cause.message, error.cause.stack], [
    "TypeError",
    "x is undefined",
    cause.stack,
  ]);
  const bare = throughMessage(new ModelError("aborted", "Cannot go on"));
  assertEquals([bare.details, "cause" in bare], [undefined, false]);
});

Deno.test("toErrorData() takes any cause", () => {
  const thrower = {
    toString() {
      throw new Error("no");
    },
  };
  for (
    const [cause, text] of [["text", "text"], [5, "5"], [null, "null"], [thrower, "(a value without a text)"]] as const
  ) {
    assertEquals(`${throughMessage(new ModelError("internal", "x", { cause })).cause}`, `Error: ${text}`);
  }
  assertFalse("cause" in throughMessage(new ModelError("internal", "x", { cause: undefined })));
});

Deno.test("cloneable() copies what can be cloned, and makes texts of the rest", () => {
  const fields = { list: [1, { a: 2n }], when: new Date(5) };
  const copy = cloneable(fields);
  assertEquals(copy, fields);
  assert(copy.list !== fields.list);
  const odd = {
    kept: { a: [1] },
    action: function go() {},
    promise: Promise.resolve(),
    symbol: Symbol("s"),
    nested: { deep: () => {} },
    get getter() {
      throw new Error("no");
    },
  };
  assertEquals(cloneable(odd) as unknown, {
    kept: { a: [1] },
    action: "function go",
    promise: "[object Promise]",
    symbol: "Symbol(s)",
    nested: "[object Object]",
    getter: "undefined",
  });
});

Deno.test("toCallData() leaves out when a call came, by a clock that the instance does not have, and the server's notes", () => {
  const call = batchCall([{ ...batchItem("a"), receivedAt: 1 }], { receivedAt: 1, trail: { queuedMs: 1 } });
  const data = toCallData(call);
  assertEquals(["receivedAt" in data, data.kind === "batch" && "receivedAt" in data.items[0]!], [false, false]);
  assertEquals("trail" in data, false);
});

Deno.test("fromCallData() gives the call that toCallData() was given, with signals of its own", () => {
  const key = createContextKey("user", "nobody");
  const base = {
    id: "r",
    version: "2",
    params: { top: 3 },
    maxTokens: 7,
    deadline: 123,
    metadata: new Headers({ "X-User": "ann" }),
    values: withValue(NO_VALUES, key, "ann"),
  };
  const session = { id: "s", turn: 1, history: [{ role: "user", content: "x" }] as const, state: new Map([["a", 1]]) };
  const calls: Call[] = [
    predictCall({ ...base, input: floats(1) }),
    chatCall("x", { ...base, session }),
    batchCall([batchItem("a", floats(1), { n: 1 })], base),
  ];
  const own = new AbortController().signal;
  const items = [new AbortController().signal];
  for (const call of calls) {
    const copy = fromCallData(structuredClone(toCallData(call)), own, (index) => items[index]!);
    assertStrictEquals(copy.signal, own);
    assertEquals([copy.values.get(key), [...copy.metadata]], ["ann", [["x-user", "ann"]]]);
    const { signal: _s, values: _v, metadata: _m, ...rest } = copy;
    const { signal: _signal, values: _values, metadata: _metadata, ...expected } = call;
    if (rest.kind === "batch" && expected.kind === "batch") {
      assertStrictEquals(rest.items[0]!.signal, items[0]);
      assertEquals({ ...rest.items[0]!, signal: NEVER }, expected.items[0]!);
    } else {
      assertEquals(rest, expected);
    }
  }
});

Deno.test("fromReplyData() gives the reply that toReplyData() was given", () => {
  const tensors: Reply = { type: "tensors", index: 2, output: floats(1), final: true };
  assertStrictEquals(fromReplyData(toReplyData(tensors)), tensors);
  const error = new ModelError("out_of_range", "too far");
  const failure = fromReplyData(structuredClone(toReplyData({ type: "failure", index: 3, error })));
  assert(failure.type === "failure" && failure.index === 3);
  assertInstanceOf(failure.error, ModelError);
  assertEquals([failure.error.code, failure.error.message], ["out_of_range", "too far"]);
});

Deno.test("bytesOf() counts a reply's tensors", () => {
  const output = {
    a: tensor("float32", [1, 2]) as AnyTensor,
    b: tensor("string", ["abc", "d"]) as AnyTensor,
    c: tensor("int64", [1n]) as AnyTensor,
  };
  assertEquals(bytesOf({ type: "tensors", index: 0, output }), 20);
  assertEquals(bytesOf({ type: "delta", index: 0, text: "abc" }), 0);
  assertEquals(bytesOf({ type: "session", state: new Uint8Array(9) }), 0);
});
