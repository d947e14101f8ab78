// Reads handwritten digits: one image or several in a request, or a stream of images in one run of the network.
import { defineModel, ModelError, type Tensor } from "tensorlet";
import { CLASSES, loadDigitNetwork, PIXELS } from "./network.ts";

export default defineModel({
  description: "Handwritten digits, 28 x 28 pixels in 0..1, white on black -> the probabilities of 0 to 9",
  // No shape: besides images, it takes the flat vectors of BatchPredict.
  input: { dtype: "float32", description: "[N,1,28,28], [N,28,28], [N,784] or a vector of N * 784 values" },
  output: { dtype: "float32", shape: [-1, CLASSES] },
  batching: { maxSize: 64 },

  load: () => loadDigitNetwork(),
  unload: (network) => network.release(),

  predict(images, ctx) {
    checkImages(images);
    return ctx.model.classify(images.data);
  },

  async batch(items, ctx) {
    // A bad item is answered with its error and left out of the run: its neighbours know nothing of it.
    const problems = items.map(({ input }) => imagesProblem(input));
    const good = items.filter((_, i) => problems[i] === undefined);
    const probabilities = await ctx.model.classify(concat(good.map(({ input }) => input.data)));
    let read = 0;
    return items.map(({ input }, i) => {
      const problem = problems[i];
      if (problem) return problem;
      const start = read;
      read += (input.data.length / PIXELS) * CLASSES;
      return probabilities.slice(start, read);
    });
  },
});

function checkImages(images: Tensor<"float32">): void {
  const problem = imagesProblem(images);
  if (problem) throw problem;
}

function imagesProblem({ data, shape }: Tensor<"float32">): ModelError | undefined {
  const count = data.length / PIXELS;
  const wanted = [[count * PIXELS], [count, PIXELS], [count, 28, 28], [count, 1, 28, 28]];
  const fits = Number.isInteger(count) && count > 0 && wanted.some((dims) => `${dims}` === `${shape}`);
  if (fits) return undefined;
  return new ModelError(
    "invalid_argument",
    `Cannot read the images: got ${data.length} values in shape [${shape}], ` +
      `wanted [N,1,28,28], [N,28,28], [N,784] or [N*784] (784 values for each image)`,
  );
}

function concat(parts: readonly Float32Array[]): Float32Array {
  const whole = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
