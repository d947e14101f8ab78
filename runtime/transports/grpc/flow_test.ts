import { assertEquals } from "tensorlet/assert";
import { FlowMeter } from "./flow.ts";

const DATA = 0, HEADERS = 1;

function frame(type: number, streamId: number, length: number): Uint8Array {
  const bytes = new Uint8Array(9 + length).fill(0xff, 9);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, length << 8);
  view.setUint8(3, type);
  view.setUint32(5, streamId);
  return bytes;
}

function concat(...parts: Uint8Array[]): Uint8Array {
  return new Uint8Array(parts.flatMap((part) => [...part]));
}

function createSocket(): { readonly written: unknown[]; write(...args: unknown[]): boolean } {
  const written: unknown[] = [];
  return { written, write: (bytes) => written.push(bytes) > 0 };
}

function createMeter(): FlowMeter {
  // deno-lint-ignore no-explicit-any
  return new FlowMeter({ write: () => true } as any);
}

const FRAMES = concat(
  frame(HEADERS, 1, 20),
  frame(DATA, 1, 100),
  frame(DATA, 3, 7),
  frame(DATA, 1, 0),
  frame(DATA, 1, 1),
);

Deno.test("FlowMeter counts the DATA bytes of a stream, wherever the writes cut its frames", () => {
  for (let size = 1; size <= FRAMES.length; size++) {
    const meter = createMeter();
    const one = meter.track(1);
    const three = meter.track(3);
    for (let at = 0; at < FRAMES.length; at += size) meter.observe(FRAMES.subarray(at, at + size));
    assertEquals([one.sent, three.sent], [101, 7]);
  }
});

Deno.test("FlowMeter tells of progress, and forgets a stream that ended", () => {
  const meter = createMeter();
  const flow = meter.track(1);
  let told = 0;
  flow.onSent = () => told++;
  meter.observe(frame(DATA, 1, 5));
  meter.untrack(1);
  meter.observe(frame(DATA, 1, 5));
  assertEquals([told, flow.sent], [1, 5]);
});

Deno.test("FlowMeter sees what a socket writes, and lets it through", () => {
  const written: unknown[] = [];
  const socket = { write: (...args: unknown[]) => (written.push(...args), false) };
  // deno-lint-ignore no-explicit-any
  const flow = new FlowMeter(socket as any).track(1);
  const bytes = frame(DATA, 1, 5);
  const done = () => {};
  assertEquals(socket.write(bytes, done), false);
  assertEquals(written, [bytes, done]);
  assertEquals(flow.sent, 5);
});

Deno.test("FlowMeter does not count what a full socket still holds, until the socket has drained", () => {
  const socket = { writableLength: 0, write: () => false };
  // deno-lint-ignore no-explicit-any
  const meter = new FlowMeter(socket as any);
  const flow = meter.track(1);
  const seen: number[] = [];
  flow.onSent = () => seen.push(flow.sent);
  const send = (waiting: number, length: number) => {
    socket.writableLength = waiting;
    meter.observe(frame(DATA, 1, length));
  };
  send(0, 5);
  send(1024 * 1024, 6); // as much as may wait
  send(1024 * 1024 + 1, 7);
  send(2 * 1024 * 1024, 8);
  meter.drained();
  meter.drained();
  send(0, 9);
  assertEquals(seen, [5, 11, 26, 35]);
});

Deno.test("FlowMeter inserts a frame between two others, wherever the writes cut them, and not as the first", () => {
  const [first, second, inserted] = [frame(HEADERS, 1, 3), frame(DATA, 1, 4), frame(7, 0, 8)];
  const both = concat(first, second);
  for (let at = 0; at <= both.length; at++) {
    const socket = createSocket();
    // deno-lint-ignore no-explicit-any
    const meter = new FlowMeter(socket as any);
    if (at > 0) socket.write(both.subarray(0, at));
    meter.insert(inserted);
    if (at < both.length) socket.write(both.subarray(at));
    const expected = at === first.length ? concat(first, inserted, second) : concat(both, inserted);
    assertEquals(concat(...socket.written as Uint8Array[]), expected);
  }
});

Deno.test("FlowMeter inserts a frame once", () => {
  const socket = createSocket();
  // deno-lint-ignore no-explicit-any
  const meter = new FlowMeter(socket as any);
  socket.write(FRAMES);
  meter.insert(FRAMES);
  socket.write(FRAMES);
  assertEquals(socket.written.length, 3);
});
