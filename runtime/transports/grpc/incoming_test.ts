import { assertEquals, assertStrictEquals } from "tensorlet/assert";
import { FRAME } from "./frames.ts";
import { FrameFilter } from "./incoming.ts";

function frame(type: number, ...payload: number[]): number[] {
  return [0, 0, payload.length, type, 0, 0, 0, 0, 1, ...payload];
}

const PREFACE = [...new TextEncoder().encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")];
const KEPT = [frame(4), frame(1, 7, 7, 7), frame(0), frame(0, 1, 2)];
const GOAWAY = frame(7, 0, 0, 0, 0, 0, 0, 0, 11);
const SENT = new Uint8Array([PREFACE, KEPT[0]!, GOAWAY, KEPT[1]!, GOAWAY, GOAWAY, KEPT[2]!, KEPT[3]!, GOAWAY].flat());

Deno.test("FrameFilter takes frames out, wherever the bytes are cut", () => {
  for (let size = 1; size <= SENT.length; size++) {
    const filter = new FrameFilter((type) => type !== FRAME.goaway);
    const received: number[] = [];
    for (let at = 0; at < SENT.length; at += size) received.push(...filter.push(SENT.subarray(at, at + size)));
    assertEquals(received, [...PREFACE, ...KEPT.flat()]);
  }
});

Deno.test("FrameFilter hands on what it got when it takes nothing out", () => {
  const filter = new FrameFilter(() => {});
  const first = SENT.subarray(0, PREFACE.length + KEPT[0]!.length + 9);
  const second = SENT.subarray(first.length);
  assertStrictEquals(filter.push(first), first);
  assertStrictEquals(filter.push(second), second);
});

Deno.test("FrameFilter tells of each frame's type and stream", () => {
  const seen: (readonly [number, number])[] = [];
  const filter = new FrameFilter((type, streamId) => void seen.push([type, streamId]));
  filter.push(new Uint8Array([...PREFACE, ...frame(FRAME.rstStream, 0, 0, 0, 8), ...frame(4)]));
  assertEquals(seen, [[3, 1], [4, 1]]);
});
