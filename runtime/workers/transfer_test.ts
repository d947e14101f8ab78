import { assert, assertEquals, assertStrictEquals } from "tensorlet/assert";
import { batchCall, batchItem, chatCall, predictCall } from "../../test/harness/calls.ts";
import type { Call } from "../core/call.ts";
import { type AnyTensor, type NamedTensors, tensor } from "../core/tensor.ts";
import { type FromInstance, toCallData } from "./messages.ts";
import { inputBuffers, withOwnBuffers } from "./transfer.ts";

const LARGE = 16 * 1024;
const bytes = (data: Uint8Array<ArrayBuffer>) => tensor("uint8", data) as AnyTensor;
const message = (call: Call) => ({ type: "call", id: 1, call: toCallData(call) }) as const;

Deno.test("inputBuffers() hands over the buffers of large tensors, each once", () => {
  const large = new Uint8Array(LARGE);
  const other = new Float64Array(LARGE);
  const input = {
    large: bytes(large),
    again: bytes(large.subarray(0, LARGE)),
    other: tensor("float64", other) as AnyTensor,
    small: bytes(new Uint8Array(LARGE - 1)),
    text: tensor("string", ["x".repeat(LARGE)]) as AnyTensor,
  };
  assertEquals(inputBuffers(message(predictCall({ input }))).length, 2);
  assertStrictEquals(inputBuffers(message(predictCall({ input })))[0], large.buffer);
  const items = [batchItem("a", { x: bytes(large) }), batchItem("b", { x: bytes(new Uint8Array(LARGE)) })];
  assertEquals(inputBuffers(message(batchCall(items))).length, 2);
  assertEquals(inputBuffers(message(chatCall("x"))), []);
  assertEquals(inputBuffers({ type: "ping", id: 1 }), []);
});

Deno.test("inputBuffers() keeps a buffer of which a tensor is a small part", () => {
  const buffer = new ArrayBuffer(3 * LARGE);
  const part = (length: number) => ({ x: bytes(new Uint8Array(buffer, 0, length)) });
  assertEquals(inputBuffers(message(predictCall({ input: part(LARGE) }))), []);
  assertEquals(inputBuffers(message(predictCall({ input: part(2 * LARGE) }))), [buffer]);
});

const reply = (output: NamedTensors): FromInstance => ({
  type: "reply",
  id: 1,
  reply: { type: "tensors", index: 0, output },
  end: true,
});
const outputOf = (sent: FromInstance) => {
  assert(sent.type === "reply" && sent.reply.type === "tensors");
  return sent.reply.output;
};

Deno.test("withOwnBuffers() hands over copies of large tensors: the function goes on using its own", () => {
  const kept = new Uint8Array(LARGE).fill(7);
  const small = bytes(Uint8Array.of(1));
  const [sent, buffers] = withOwnBuffers(reply({ kept: bytes(kept), small }));
  const copied = structuredClone(sent, { transfer: buffers });
  assertEquals([buffers.length, kept.length, kept[5]], [1, LARGE, 7]);
  assertEquals(outputOf(copied), { kept: bytes(kept), small });
});

Deno.test("withOwnBuffers() sends a small view without the rest of its buffer", () => {
  const whole = new Uint8Array(1_000_000);
  const [sent, buffers] = withOwnBuffers(reply({ x: bytes(whole.subarray(10, 20)), y: bytes(whole) }));
  const output = outputOf(structuredClone(sent, { transfer: buffers }));
  assertEquals([output.x!.data.length, (output.x!.data as Uint8Array).buffer.byteLength], [10, 10]);
  assertEquals([output.y!.data.length, whole.length, buffers.length], [1_000_000, 1_000_000, 1]);
});

Deno.test("withOwnBuffers() leaves other messages as they are", () => {
  const messages: FromInstance[] = [
    { type: "loaded" },
    { type: "reply", id: 1, reply: { type: "delta", index: 0, text: "a" }, end: false },
    reply({ text: tensor("string", ["a"]) as AnyTensor }),
  ];
  for (const each of messages) {
    const [sent, buffers] = withOwnBuffers(each);
    assertEquals([sent, buffers], [each, []]);
  }
});
