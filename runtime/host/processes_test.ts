import { assertEquals, assertStringIncludes, assertThrows } from "tensorlet/assert";
import { ConfigError } from "./error.ts";
import { countProcesses, obstacleToProcesses } from "./processes.ts";

Deno.test("countProcesses() takes a number, and auto for the processors that there are", () => {
  assertEquals(countProcesses(3, undefined), 3);
  assertEquals(countProcesses("auto", undefined), navigator.hardwareConcurrency);
});

Deno.test("countProcesses() allows one alone, and refuses more", () => {
  assertEquals([countProcesses(1, "it rains"), countProcesses("auto", "it rains")], [1, 1]);
  assertThrows(() => countProcesses(2, "it rains"), ConfigError, "Cannot serve with 2 processes: it rains");
});

Deno.test("obstacleToProcesses() is where nobody starts them, or the system does not spread connections", () => {
  assertEquals(obstacleToProcesses(undefined, "linux"), undefined);
  assertStringIncludes(obstacleToProcesses("it was told so", "linux")!, "there is none: it was told so");
  assertStringIncludes(obstacleToProcesses(undefined, "darwin")!, "this is darwin");
});
