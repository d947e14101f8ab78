import { assertAlmostEquals, assertEquals } from "tensorlet/assert";
import { inkOf, layoutOf, tensorOf } from "./image.js";

const layout = (shape: readonly number[], dtype: "float32" | "string" = "float32") =>
  layoutOf({ name: "0", dtype, shape });

Deno.test("the console knows which inputs take an image, and how", () => {
  const found = (shape: readonly number[]) => {
    const { width, height, channels, channelsLast } = layout(shape) ?? {};
    return [width, height, channels, channelsLast];
  };
  assertEquals(found([-1, 3, 224, 320]), [320, 224, 3, false]);
  assertEquals(found([-1, 224, 320, 3]), [320, 224, 3, true]);
  assertEquals(found([1, 28, 28]), [28, 28, 1, false]);
  assertEquals(found([-1, 64, 48]), [48, 64, 1, true]);
  assertEquals(found([-1, 784]), [28, 28, 1, true]);
  assertEquals(layout([-1, 3, -1, -1])?.shape, [1, 3, 224, 224]);
  for (const shape of [[3], [-1, 1024], [-1, 4, 4, 3], [2, 3, 64, 64], [8, 8, 8, 8, 3]]) {
    assertEquals(layout(shape), undefined);
  }
  assertEquals(layout([1, 28, 28], "string"), undefined);
});

Deno.test("the console takes an input's layout from its description where it has no shape", () => {
  const spec = { name: "0", dtype: "float32", description: "[N,1,28,28] or a vector" } as const;
  assertEquals(layoutOf(spec)?.shape, [1, 1, 28, 28]);
});

// Two pixels: red and white.
const PIXELS = new Uint8ClampedArray([255, 0, 0, 255, 255, 255, 255, 255]);

function values(channels: 1 | 3, channelsLast: boolean, range: "unit" | "signed" | "byte"): number[] {
  const two = { shape: [2], width: 2, height: 1, channels, channelsLast };
  const sent = tensorOf(PIXELS, two, range, "float32") as { base64: string };
  return [...new Float32Array(Uint8Array.fromBase64(sent.base64).buffer)];
}

Deno.test("the console puts pixels where the layout wants them", () => {
  assertEquals(values(3, true, "unit"), [1, 0, 0, 1, 1, 1]);
  assertEquals(values(3, false, "unit"), [1, 1, 0, 1, 0, 1]);
  assertEquals(values(3, true, "signed"), [1, -1, -1, 1, 1, 1]);
  const [red, white] = values(1, true, "byte");
  assertAlmostEquals(red!, 76.245, 1e-4);
  assertAlmostEquals(white!, 255, 1e-4);
});

Deno.test("the console finds the ink of a drawing", () => {
  const pixels = new Uint8ClampedArray(4 * 4 * 4);
  for (const at of [5, 6]) pixels.fill(255, at * 4, at * 4 + 4);
  assertEquals(inkOf(pixels, 4), { left: 1, top: 1, width: 2, height: 1, x: 2, y: 1.5 });
  assertEquals(inkOf(new Uint8ClampedArray(64), 4), undefined);
});
