import { ModelError, tensor } from "tensorlet";
import { assertAlmostEquals, assertEquals, assertRejects } from "tensorlet/assert";
import { testModel } from "tensorlet/testing";
import { CLASSES, type DigitNetwork, PIXELS } from "./digits/network.ts";
import classifier from "./image_classifier_v1.ts";

// Stands in for the network and keeps what it was given: what is tested is the preprocessing.
class FakeNetwork implements DigitNetwork {
  seen = new Float32Array();
  classify(pixels: Float32Array): Promise<Float32Array> {
    this.seen = Float32Array.from(pixels);
    return Promise.resolve(new Float32Array(pixels.length / PIXELS * CLASSES));
  }
  release(): Promise<void> {
    return Promise.resolve();
  }
}

/** A picture with one colour for each row and column. */
function picture(colour: (row: number, column: number) => readonly [number, number, number]): Float32Array {
  const rgb = new Float32Array(224 * 224 * 3);
  for (let i = 0; i < 224 * 224; i++) rgb.set(colour(Math.floor(i / 224), i % 224), i * 3);
  return rgb;
}

Deno.test("image_classifier_v1 weighs the colours by luminance", async () => {
  const network = new FakeNetwork();
  await using model = await testModel(classifier, { model: network });
  const colours = [[[1, 0, 0], 0.299], [[0, 1, 0], 0.587], [[0, 0, 1], 0.114], [[1, 1, 1], 1]] as const;
  for (const [colour, luminance] of colours) {
    const { shape } = await model.predict(picture(() => colour));
    assertEquals(shape, [1, CLASSES]);
    assertEquals(network.seen.length, PIXELS);
    for (const value of network.seen) assertAlmostEquals(value, luminance, 1e-5);
  }
});

Deno.test("image_classifier_v1 averages squares of 8 by 8", async () => {
  const network = new FakeNetwork();
  await using model = await testModel(classifier, { model: network });
  // The square in row 2, column 5 is white but for its first quarter.
  const inSquare = (row: number, column: number) => row >> 3 === 2 && column >> 3 === 5 && (row & 7) >= 2;
  await model.predict(picture((row, column) => inSquare(row, column) ? [1, 1, 1] : [0, 0, 0]));
  assertAlmostEquals(network.seen[2 * 28 + 5]!, 0.75, 1e-5);
  assertEquals(network.seen.filter((value) => value !== 0).length, 1);
});

Deno.test("image_classifier_v1 keeps pictures apart", async () => {
  const network = new FakeNetwork();
  await using model = await testModel(classifier, { model: network });
  const pictures = new Float32Array([...picture(() => [0, 0, 0]), ...picture(() => [1, 1, 1])]);
  const { shape } = await model.predict(tensor("float32", pictures, [2, 224, 224, 3]));
  assertEquals(shape, [2, CLASSES]);
  assertEquals(network.seen.subarray(0, PIXELS).every((value) => value === 0), true);
  assertEquals(network.seen.subarray(PIXELS).every((value) => value > 0.99), true);
});

Deno.test("image_classifier_v1 refuses other sizes", async () => {
  await using model = await testModel(classifier, { model: new FakeNetwork() });
  const small = tensor("float32", new Float32Array(28 * 28 * 3), [1, 28, 28, 3]);
  await assertRejects(() => model.predict(small), ModelError, "got shape [1,28,28,3], wanted [-1,224,224,3]");
});
