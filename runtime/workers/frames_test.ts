import { assertEquals, assertRejects } from "tensorlet/assert";
import { batchCall, batchItem, chatCall, floats, predictCall } from "../../test/harness/calls.ts";
import type { NamedTensors } from "../core/tensor.ts";
import { createContextKey, NO_VALUES, withValue } from "../core/values.ts";
import { encodeFrame, FrameWriter, readFrames } from "./frames.ts";
import { type FromInstance, toCallData, type ToInstance } from "./messages.ts";

type Message = ToInstance | FromInstance;

function encode(...messages: readonly Message[]): Uint8Array {
  const pieces = messages.flatMap((message) => encodeFrame(message, { copies: true }));
  const bytes = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

// Gives the bytes in parts of `size`.
function sourceOf(bytes: Uint8Array, size = bytes.length) {
  let at = 0;
  return {
    read(into: Uint8Array): Promise<number | null> {
      if (at === bytes.length) return Promise.resolve(null);
      const part = bytes.subarray(at, at + Math.min(size, into.length));
      into.set(part);
      at += part.length;
      return Promise.resolve(part.length);
    },
  };
}

async function decode(bytes: Uint8Array, size?: number): Promise<unknown[]> {
  const messages: unknown[] = [];
  await readFrames(sourceOf(bytes, size), (message) => messages.push(message));
  return messages;
}

const TENSORS = {
  bool: { dtype: "bool", shape: [2], data: Uint8Array.of(0, 1) },
  int8: { dtype: "int8", shape: [1], data: Int8Array.of(-128) },
  int64: { dtype: "int64", shape: [2, 1], data: BigInt64Array.of(-(2n ** 63n), 2n ** 63n - 1n) },
  uint64: { dtype: "uint64", shape: [], data: BigUint64Array.of(2n ** 64n - 1n) },
  float16: { dtype: "float16", shape: [2], data: Float16Array.of(1.5, -0) },
  bfloat16: { dtype: "bfloat16", shape: [1], data: Uint16Array.of(0x3f80) },
  float32: { dtype: "float32", shape: [3], data: Float32Array.of(NaN, -0, Infinity) },
  float64: { dtype: "float64", shape: [0, 3], data: new Float64Array(0) },
  string: { dtype: "string", shape: [3], data: ["", "ü\ud800", "__proto__"] },
  bytes: { dtype: "bytes", shape: [2], data: [new Uint8Array(0), Uint8Array.of(0, 255)] },
} as const satisfies NamedTensors;

const key = createContextKey("key", "");
const CALLS = [
  predictCall({ input: TENSORS, params: { n: -0, nan: NaN, text: "x", flag: true } }),
  predictCall({ input: floats(1, 2), params: { n: 1 } }),
  predictCall({
    input: floats(),
    values: withValue(NO_VALUES, key, "v"),
    metadata: new Headers({ a: "ü".normalize() }),
  }),
  batchCall([batchItem("a", TENSORS), batchItem("b", floats(3))]),
  chatCall("hello", {
    session: { id: "s", turn: 1, history: [], state: new Map<unknown, unknown>([["since", new Date(5)], ["big", 1n]]) },
  }),
];
const MESSAGES: readonly Message[] = [
  ...CALLS.map((call, id): ToInstance => ({ type: "call", id, call: toCallData(call) })),
  { type: "credit", id: 1, count: 8 },
  { type: "reply", id: 2, reply: { type: "tensors", index: 0, output: TENSORS, final: true }, end: true },
  { type: "reply", id: 3, reply: { type: "delta", index: 7, text: "\u2028\ud83d" }, end: false },
  { type: "reply", id: 3, reply: { type: "session", state: { at: new Date(1), n: NaN } }, end: false },
  { type: "end", id: 4, error: { code: "aborted", message: "no", details: { big: 5n } }, settled: true },
  { type: "log", level: "info", message: "m", fields: { at: new Date(2) } },
];

// A field that is undefined may be left out.
function defined(message: unknown): unknown {
  if (typeof message !== "object" || message === null || !("call" in message)) return message;
  const call = Object.entries(message.call as object).filter(([, value]) => value !== undefined);
  return { ...message, call: Object.fromEntries(call) };
}

Deno.test("frames carry every message as it is, wherever the bytes are cut", async () => {
  const bytes = encode(...MESSAGES);
  for (const size of [1, 2, 7, 64, 1000, bytes.length]) {
    assertEquals((await decode(bytes, size)).map(defined), MESSAGES.map(defined));
  }
});

Deno.test("frames give large tensors memory of their own", async () => {
  const data = Float32Array.from({ length: 100_000 }, (_, i) => i);
  const message: ToInstance = {
    type: "call",
    id: 1,
    call: toCallData(predictCall({ input: { "0": { dtype: "float32", shape: [100_000], data } } })),
  };
  const [read] = await decode(encode(message), 10_000) as [typeof message];
  assertEquals(defined(read), defined(message));
  const { "0": tensor } = (read.call as { input: NamedTensors }).input;
  assertEquals((tensor!.data as Float32Array).buffer.byteLength, 400_000);
});

Deno.test("readFrames() leaves out a message that is cut short", async () => {
  const bytes = encode(MESSAGES[0]!, MESSAGES[1]!);
  const first = encode(MESSAGES[0]!).length;
  for (let length = 0; length < bytes.length; length += 13) {
    assertEquals((await decode(bytes.subarray(0, length))).length, length < first ? 0 : 1);
  }
});

Deno.test("readFrames() rejects what no sender of ours writes, and takes no memory for it", async () => {
  const frame = (headerBytes: number, lengths: readonly number[], header: Uint8Array | string) => {
    const text = typeof header === "string" ? new TextEncoder().encode(header) : header;
    const head = new Uint8Array(new Uint32Array([headerBytes, lengths.length, ...lengths]).buffer);
    return new Uint8Array([...head, ...text, ...new Uint8Array(64)]);
  };
  const json = (value: unknown, lengths: readonly number[] = []) => {
    const text = JSON.stringify(value);
    return frame(new TextEncoder().encode(text).length, lengths, text);
  };
  const reply = (tensor: unknown) => ({
    type: "reply",
    id: 1,
    reply: { type: "tensors", index: 0, output: { a: tensor } },
  });
  const cases: readonly Uint8Array[] = [
    frame(0xffffffff, [], ""),
    frame(4, [0xffffffff], "{}  "),
    frame(2, [], "{]"),
    frame(3, [], Uint8Array.of(0xff, 0x0f, 0x99)),
    json(reply({ dtype: "float32", shape: [1], data: 5 })),
    json(reply({ dtype: "float32", shape: [2], data: 0 }), [4]),
    json(reply({ dtype: "float32", shape: [1], data: 0 }), [3]),
    json(reply({ dtype: "float33", shape: [1], data: 0 }), [4]),
    json(reply({ dtype: "float32", shape: [-1], data: 0 }), [4]),
    json(reply({ dtype: "float32", shape: "1", data: 0 }), [4]),
    json(reply({ dtype: "string", shape: [1], data: [5] })),
    json(reply(null)),
    json(reply(5)),
  ];
  for (const bytes of cases) {
    await assertRejects(() => decode(bytes), Error);
  }
  // A text is a message like any other here; who reads it looks for its type.
  assertEquals(await decode(json("text").subarray(0, 8 + 6)), ["text"]);
});

Deno.test("FrameWriter writes a turn's small messages at once, and large tensors from where they are", async () => {
  const writes: Uint8Array[] = [];
  const done = Promise.withResolvers<void>();
  const sink = {
    write(bytes: Uint8Array) {
      const taken = bytes.subarray(0, Math.min(bytes.length, 300_000)); // a part, as a socket may
      writes.push(taken);
      if (writes.length === 4) done.resolve();
      return Promise.resolve(taken.length);
    },
  };
  const writer = new FrameWriter(sink, false, () => {});
  const data = new Float32Array(100_000);
  writer.write({ type: "ping", id: 1 });
  writer.write({ type: "credit", id: 1, count: 2 });
  writer.write({
    type: "call",
    id: 2,
    call: toCallData(predictCall({ input: { "0": { dtype: "float32", shape: [100_000], data } } })),
  });
  writer.write({ type: "ping", id: 3 });
  await done.promise;
  assertEquals(writes.map(({ buffer }) => buffer === data.buffer), [false, true, true, false]);
  const all = writes.flatMap((part) => [...part]);
  assertEquals((await decode(new Uint8Array(all))).length, 4);
});

Deno.test("FrameWriter writes a message of very many tensors", async () => {
  const items = Array.from({ length: 200_000 }, (_, i) => batchItem(`${i}`, floats(i)));
  const parts: Uint8Array[] = [];
  const done = Promise.withResolvers<void>();
  const call: ToInstance = { type: "call", id: 1, call: toCallData(batchCall(items)) };
  const wanted = encode(call).length;
  let written = 0;
  const write = (bytes: Uint8Array) => {
    parts.push(bytes);
    written += bytes.length;
    if (written === wanted) done.resolve();
    return Promise.resolve(bytes.length);
  };
  new FrameWriter({ write }, false, done.reject).write(call);
  await done.promise;
  const all = new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer());
  const [read] = await decode(all) as [{ readonly call: { readonly items: readonly { input: NamedTensors }[] } }];
  assertEquals(read.call.items.at(-1)!.input, floats(199_999));
});

Deno.test("FrameWriter tells once that nothing more can be written", async () => {
  const broken: unknown[] = [];
  const told = Promise.withResolvers<void>();
  const sink = { write: () => Promise.reject(new Error("closed")) };
  const writer = new FrameWriter(sink, true, (error) => (broken.push(`${error}`), told.resolve()));
  writer.write({ type: "ping", id: 1 });
  writer.write({ type: "ping", id: 2 });
  await told.promise;
  writer.write({ type: "ping", id: 3 });
  assertEquals(broken, ["Error: closed"]);
});
