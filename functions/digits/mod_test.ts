import { ModelError, tensor } from "tensorlet";
import { assertEquals, assertInstanceOf, assertRejects, assertStringIncludes } from "tensorlet/assert";
import { testModel } from "tensorlet/testing";
import digits from "./mod.ts";
import { CLASSES, type DigitNetwork, PIXELS } from "./network.ts";

// Stands in for the network: no weights, no native code. An image shows the digit that its first value says.
class FakeNetwork implements DigitNetwork {
  runs = 0;
  released = false;
  classify(pixels: Float32Array): Promise<Float32Array> {
    this.runs++;
    const probabilities = new Float32Array(pixels.length / PIXELS * CLASSES);
    for (let i = 0; i * PIXELS < pixels.length; i++) probabilities[i * CLASSES + pixels[i * PIXELS]!] = 1;
    return Promise.resolve(probabilities);
  }
  release(): Promise<void> {
    this.released = true;
    return Promise.resolve();
  }
}

function images(...shown: number[]): Float32Array {
  const pixels = new Float32Array(shown.length * PIXELS);
  shown.forEach((digit, i) => pixels[i * PIXELS] = digit);
  return pixels;
}

function probabilities(...read: number[]) {
  const data = new Float32Array(read.length * CLASSES);
  read.forEach((digit, i) => data[i * CLASSES + digit] = 1);
  return { dtype: "float32", shape: [read.length, CLASSES], data } as const;
}

Deno.test("digits takes images in four shapes", async () => {
  await using model = await testModel(digits, { model: new FakeNetwork() });
  for (const shape of [[2, 1, 28, 28], [2, 28, 28], [2, 784], [2 * 784]]) {
    assertEquals(await model.predict(tensor("float32", images(7, 3), shape)), probabilities(7, 3));
  }
});

Deno.test("digits refuses what is no whole number of images", async () => {
  await using model = await testModel(digits, { model: new FakeNetwork() });
  const refused = async (length: number, shape: number[], text: string) => {
    const request = () => model.predict(tensor("float32", new Float32Array(length), shape));
    const error = await assertRejects(request, ModelError, text);
    assertEquals(error.code, "invalid_argument");
    assertStringIncludes(error.message, "wanted [N,1,28,28], [N,28,28], [N,784] or [N*784]");
  };
  await refused(783, [783], "got 783 values in shape [783]");
  await refused(0, [0], "got 0 values in shape [0]");
  await refused(3 * 784, [1, 3, 28, 28], "got 2352 values in shape [1,3,28,28]"); // colours, not three images
});

Deno.test("digits reads a batch in one run", async () => {
  const network = new FakeNetwork();
  await using model = await testModel(digits, { model: network });
  const outcomes = await model.batch([images(4), images(1, 2), images(9)]);
  assertEquals(outcomes, [probabilities(4), probabilities(1, 2), probabilities(9)]);
  assertEquals(network.runs, 1);
});

Deno.test("digits fails only the bad item of a batch", async () => {
  await using model = await testModel(digits, { model: new FakeNetwork() });
  const [first, bad, last] = await model.batch([images(4), new Float32Array(785), images(9)]);
  assertEquals([first, last], [probabilities(4), probabilities(9)]);
  assertInstanceOf(bad, ModelError);
  assertStringIncludes(bad.message, "got 785 values");
});

Deno.test("digits releases its network", async () => {
  const network = new FakeNetwork();
  await (await testModel(digits, { model: network }))[Symbol.asyncDispose]();
  assertEquals(network.released, true);
});
