import { assertEquals } from "tensorlet/assert";
import { parseListeners } from "./accept_queue.ts";

const TABLE = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:C383 00000000:0000 0A 00000000:00000003 00:00000000 00000000     0        0 111 2 0000000000000000 100 0 0 10 0
   1: 0100007F:C383 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 112 1 0000000000000000 100 0 0 10 0
   2: 0100007F:C383 0100007F:9C40 01 00000000:00000007 00:00000000 00000000     0        0 113 1 0000000000000000 20 4 30 10 -1
   3: 0100007F:C384 00000000:0000 0A 00000000:00000001 00:00000000 00000000     0        0 114 1 0000000000000000 100 0 0 10 0
`;

Deno.test("parseListeners() finds the listeners on a port, and what waits for each", () => {
  assertEquals(parseListeners(TABLE, 0xc383), [{ inode: "111", waiting: 3 }, { inode: "112", waiting: 0 }]);
  assertEquals(parseListeners(TABLE, 1), []);
  assertEquals(parseListeners("", 1), []);
});
