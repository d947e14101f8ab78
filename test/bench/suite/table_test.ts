import { assertEquals } from "tensorlet/assert";
import { ROW } from "./sample_results.ts";
import { formatGoals, formatMemory, formatNumber, formatRow, formatSkipped } from "./table.ts";

Deno.test("formatNumber keeps three digits of small numbers and all of large ones", () => {
  const numbers = [0, 0.01234, 0.5, 1.2345, 12.345, 123.45, 12345.6, NaN];
  assertEquals(numbers.map(formatNumber), ["0", "0.012", "0.500", "1.23", "12.3", "123", "12,346", "-"]);
});

Deno.test("formatRow has a line for each contender and the row's own figure first", () => {
  assertEquals(
    formatRow(ROW),
    `small calls & <more>
                     calls a second              p50, ms
  Tensorlet  8,000 (4,000 to 9,000)  8.00 (7.00 to 16.0)
  Python     1,500 (1,000 to 2,000)  45.0 (30.0 to 60.0)`,
  );
  assertEquals(formatRow({ ...ROW, contenders: [] }), "small calls & <more>: not measured");
});

Deno.test("formatGoals says of each ratio what was wanted and whether it is met", () => {
  assertEquals(
    formatGoals([ROW]),
    `Ratios, each within its round
  small  calls a second of Tensorlet to Python     4.00 (4.00 to 4.00)   at least 5  MISSED
  small  p50 of Tensorlet to Python             0.267 (0.267 to 0.267)  at most 0.5     met`,
  );
  assertEquals(formatGoals([]), "No goal could be looked at");
});

Deno.test("formatMemory has what was measured", () => {
  const memory = [{ server: "A", idle: 100, connectionKib: 20, afterCalls: [110, 120] }, { server: "B", idle: 7.5 }];
  assertEquals(
    formatMemory(memory, 1000),
    `Memory, RSS of the server and all its processes
     idle, MiB  a connection, KiB  an open stream, KiB  64 MiB message, MiB on top  after each 1,000 small calls, MiB  growth, MiB
  A        100               20.0                    -                           -                            110 120         10.0
  B       7.50                  -                    -                           -                                  -            -`,
  );
});

Deno.test("formatSkipped gathers what has the same reason", () => {
  const skipped = [{ what: "C++", why: "needs g++" }, { what: "A", why: "x" }, { what: "D", why: "needs g++" }];
  assertEquals(formatSkipped(skipped), "Could not be run\n  C++; D: needs g++\n  A: x");
});
