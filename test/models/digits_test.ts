// The digit functions with their real network. Needs files and native code.
import { ModelError, tensor } from "tensorlet";
import { assert, assertAlmostEquals, assertEquals, assertInstanceOf } from "tensorlet/assert";
import { testModel } from "tensorlet/testing";
import digits from "../../functions/digits/mod.ts";
import classifier from "../../functions/image_classifier_v1.ts";

// 200 digits that the network was not trained on: 28 x 28 bytes each, 20 per class, in the order of the classes.
const bytes = await Deno.readFile(new URL("../testdata/digits.u8", import.meta.url));
const pixels = Float32Array.from(bytes, (value) => value / 255);
const COUNT = pixels.length / 784;
const CLASS_SIZE = 20;

/** The share of images whose likeliest class is the right one. */
function accuracy(probabilities: Float32Array, labels: readonly number[]): number {
  const right = labels.filter((label, i) => {
    const row = probabilities.subarray(i * 10, (i + 1) * 10);
    assertAlmostEquals(row.reduce((sum, value) => sum + value), 1, 1e-5);
    return row.indexOf(Math.max(...row)) === label;
  });
  return right.length / labels.length;
}

function image(index: number): Float32Array {
  return pixels.slice(index * 784, (index + 1) * 784);
}

Deno.test("digits reads 95 % of unseen digits", async () => {
  await using model = await testModel(digits);
  const { data, shape } = await model.predict(tensor("float32", pixels, [COUNT, 1, 28, 28]));
  assertEquals([...shape], [200, 10]);
  const share = accuracy(data, Array.from({ length: COUNT }, (_, i) => Math.floor(i / CLASS_SIZE)));
  assert(share >= 0.95, `${share * 100} % were read rightly`);
});

Deno.test("digits answers a batch as it answers each image", async () => {
  await using model = await testModel(digits);
  const indices = Array.from({ length: 64 }, (_, i) => i * 3);
  const outcomes = await model.batch(indices.map(image));
  for (const [position, outcome] of outcomes.entries()) {
    assert(!(outcome instanceof ModelError));
    const alone = await model.predict(image(indices[position]!));
    for (const [i, value] of outcome.data.entries()) assertAlmostEquals(value, alone.data[i]!, 1e-5);
  }
});

Deno.test("digits answers a batch without a single good item", async () => {
  await using model = await testModel(digits);
  const outcomes = await model.batch([new Float32Array(3), new Float32Array(0)]);
  assertEquals(outcomes.length, 2);
  for (const outcome of outcomes) assertInstanceOf(outcome, ModelError);
});

Deno.test("image_classifier_v1 reads digits in large colour pictures", async () => {
  await using model = await testModel(classifier);
  const indices = Array.from({ length: 40 }, (_, i) => i * 5);
  const pictures = new Float32Array(indices.length * 224 * 224 * 3);
  for (let i = 0; i < pictures.length; i++) {
    const [picture, row, column] = [Math.floor(i / 150528), Math.floor(i / 672) % 224, Math.floor(i / 3) % 224];
    pictures[i] = pixels[indices[picture]! * 784 + (row >> 3) * 28 + (column >> 3)]!;
  }
  const { data, shape } = await model.predict(tensor("float32", pictures, [indices.length, 224, 224, 3]));
  assertEquals([...shape], [40, 10]);
  const share = accuracy(data, indices.map((index) => Math.floor(index / CLASS_SIZE)));
  assert(share >= 0.95, `${share * 100} % were read rightly`);
});

Deno.test("image_classifier_v1 answers no pictures with no probabilities", async () => {
  await using model = await testModel(classifier);
  const { shape } = await model.predict(tensor("float32", [], [0, 224, 224, 3]));
  assertEquals([...shape], [0, 10]);
});
