// Reads the digit in a colour picture of 224 x 224 pixels: the preprocessing that a client would else have to do.
import { defineModel } from "tensorlet";
import { CLASSES, loadDigitNetwork, PIXELS, SIDE } from "./digits/network.ts";

const PICTURE_SIDE = 224;
const CHANNELS = 3;
/** Each pixel of the small image is the mean of a square of this side. */
const BLOCK: number = PICTURE_SIDE / SIDE;

export default defineModel({
  description: "Pictures of a digit, 224 x 224 RGB in 0..1, white on black -> the probabilities of 0 to 9",
  input: { dtype: "float32", shape: [-1, PICTURE_SIDE, PICTURE_SIDE, CHANNELS] },
  output: { dtype: "float32", shape: [-1, CLASSES] },

  load: () => loadDigitNetwork(),
  unload: (network) => network.release(),
  predict: (pictures, ctx) => ctx.model.classify(shrink(pictures.data, pictures.shape[0])),
});

/** Grey images of 28 x 28 pixels from pictures of 224 x 224 in RGB. */
function shrink(rgb: Float32Array, count: number): Float32Array {
  const grey = new Float32Array(count * PIXELS);
  for (let i = 0, source = 0; source < rgb.length; i++, source += CHANNELS) {
    const row = Math.floor(i / PICTURE_SIDE); // of all pictures, one below the other
    const column = i % PICTURE_SIDE;
    const target = Math.floor(row / BLOCK) * SIDE + Math.floor(column / BLOCK);
    // Luminance after ITU-R Rec. 601.
    const luminance = 0.299 * rgb[source]! + 0.587 * rgb[source + 1]! + 0.114 * rgb[source + 2]!;
    grey[target]! += luminance / BLOCK ** 2;
  }
  return grey;
}
