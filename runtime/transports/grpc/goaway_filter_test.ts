import { assertEquals } from "tensorlet/assert";
import { GoawayFilter } from "./goaway_filter.ts";

function frame(type: number, ...payload: number[]): number[] {
  return [0, 0, payload.length, type, 0, 0, 0, 0, 1, ...payload];
}

const PREFACE = [...new TextEncoder().encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")];
const KEPT = [frame(4), frame(1, 7, 7, 7), frame(0), frame(0, 1, 2)];
const GOAWAY = frame(7, 0, 0, 0, 0, 0, 0, 0, 11);
const SENT = new Uint8Array([PREFACE, KEPT[0]!, GOAWAY, KEPT[1]!, GOAWAY, GOAWAY, KEPT[2]!, KEPT[3]!, GOAWAY].flat());

Deno.test("GoawayFilter takes GOAWAY frames out, wherever the bytes are cut", () => {
  for (let size = 1; size <= SENT.length; size++) {
    const filter = new GoawayFilter();
    const received: number[] = [];
    for (let at = 0; at < SENT.length; at += size) received.push(...filter.push(SENT.subarray(at, at + size)));
    assertEquals(received, [...PREFACE, ...KEPT.flat()]);
  }
});
