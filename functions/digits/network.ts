// The digit network in ONNX Runtime; `digits` and `image_classifier_v1` share it.
import { fileURLToPath } from "node:url";

/** Rows and columns of an image. */
export const SIDE = 28;
/** Elements of an image. */
export const PIXELS: number = SIDE * SIDE;
/** Probabilities of an image. */
export const CLASSES = 10;

/** A convolutional network that reads handwritten digits. */
export interface DigitNetwork {
  /** Images of 28 x 28 values in 0..1, white on black, one after the other -> ten probabilities for each. */
  classify(pixels: Float32Array): Promise<Float32Array>;
  /** Frees the native memory, which no garbage collector sees. */
  release(): Promise<void>;
}

/** Loads `model.onnx` beside this file. */
export async function loadDigitNetwork(): Promise<DigitNetwork> {
  // Imported here, so that only loading the model needs the permission for native code.
  const { InferenceSession, Tensor } = await import("onnxruntime-node");
  const session = await InferenceSession.create(fileURLToPath(import.meta.resolve("./model.onnx")), {
    intraOpNumThreads: 1, // the server runs many small calls: threads of one call would only disturb the others
    enableCpuMemArena: false, // batches vary in size, and the arena keeps memory for each size it has seen
    enableMemPattern: false,
  });
  return {
    async classify(pixels) {
      const count = pixels.length / PIXELS;
      if (count === 0) return new Float32Array(0);
      const { probabilities } = await session.run({ image: new Tensor("float32", pixels, [count, 1, SIDE, SIDE]) });
      return probabilities!.data as Float32Array;
    },
    release: () => session.release(),
  };
}
