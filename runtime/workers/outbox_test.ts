import { assertEquals, assertThrows } from "tensorlet/assert";
import type { FromInstance } from "./messages.ts";
import { Outbox } from "./outbox.ts";

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

function createOutbox() {
  const posted: (FromInstance | readonly FromInstance[])[] = [];
  const moved: ArrayBuffer[][] = [];
  const outbox = new Outbox((messages, buffers) => {
    posted.push(structuredClone(messages, { transfer: buffers })); // as postMessage does
    moved.push(buffers);
  });
  return { outbox, posted, moved };
}

const token = (index: number): FromInstance => ({
  type: "reply",
  id: 1,
  reply: { type: "delta", index, text: `t${index}` },
  end: false,
});

function tensorReply(data: Float32Array): FromInstance {
  const output = { "0": { dtype: "float32", shape: [data.length], data } } as const;
  return { type: "reply", id: 1, reply: { type: "tensors", index: 0, output }, end: false };
}

Deno.test("Outbox sends the first answer at once, and those behind it together", async () => {
  const { outbox, posted } = createOutbox();
  for (let i = 0; i < 4; i++) outbox.send(token(i));
  assertEquals(posted, [token(0)]);
  await turn();
  assertEquals(posted, [token(0), [token(1), token(2), token(3)]]);
  await turn();
  assertEquals(posted.length, 2);
});

Deno.test("Outbox keeps the order: what cannot wait takes along what waits", () => {
  const { outbox, posted } = createOutbox();
  outbox.send(token(0));
  outbox.send(token(1));
  outbox.send({ type: "end", id: 1, settled: true });
  assertEquals(posted, [token(0), [token(1)], { type: "end", id: 1, settled: true }]);
});

Deno.test("Outbox sends arrays as they were, large ones by handing a copy over", async () => {
  const { outbox, posted, moved } = createOutbox();
  outbox.send(token(0));
  const [small, large] = [Float32Array.of(1, 2), new Float32Array(10_000).fill(1)];
  outbox.send(tensorReply(small));
  outbox.send(tensorReply(large));
  small.fill(9);
  large.fill(9);
  await turn();
  assertEquals(posted[1], [tensorReply(Float32Array.of(1, 2)), tensorReply(new Float32Array(10_000).fill(1))]);
  assertEquals(moved.map((buffers) => buffers.length), [0, 1]);
  assertEquals(large.length, 10_000); // the function's own is still there
});

Deno.test("Outbox throws at once for what cannot be cloned", () => {
  const { outbox } = createOutbox();
  outbox.send(token(0));
  const session: FromInstance = { type: "reply", id: 1, reply: { type: "session", state: () => {} }, end: false };
  assertThrows(() => outbox.send(session), DOMException);
});
