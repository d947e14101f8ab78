import { assertEquals } from "tensorlet/assert";
import { SendWindow } from "./send_window.ts";

Deno.test("SendWindow grows by a step and shrinks by half", () => {
  const window = new SendWindow();
  const sizes = [window.size];
  for (const action of ["grow", "grow", "shrink", "grow", "shrink"] as const) {
    window[action]();
    sizes.push(window.size);
  }
  assertEquals(sizes, [16, 24, 32, 16, 24, 12]);
  assertEquals([window.increases, window.decreases], [3, 2]);
});

Deno.test("SendWindow stays within its bounds, and counts only what changed it", () => {
  const window = new SendWindow();
  for (let i = 0; i < 1_000; i++) window.grow();
  assertEquals([window.size, window.increases], [1024, 126]);
  for (let i = 0; i < 1_000; i++) window.shrink();
  assertEquals([window.size, window.decreases], [1, 10]);
});
