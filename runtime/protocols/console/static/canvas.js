// Drawing and resizing, on canvases that nobody sees.
import { inkOf } from "./image.js";
/** @import { Layout } from "./image.js" */

/** How much of its image a digit of MNIST's takes. */
const INK_SHARE = 20 / 28;

/** @param {number} width @param {number} height */
export function blank(width, height) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width, height });
  const context = contextOf(canvas);
  context.fillRect(0, 0, width, height);
  context.imageSmoothingQuality = "high";
  return { canvas, context };
}

/** @param {HTMLCanvasElement} canvas */
export const contextOf = (
  canvas,
) => /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently: true }));

/**
 * A drawing, as MNIST has digits: its ink takes 20/28 of the image, and its centre of mass is the image's centre.
 *
 * @param {HTMLCanvasElement} drawing
 * @param {Layout} layout
 */
export function centred(drawing, { width, height }) {
  const { canvas, context } = blank(width, height);
  const ink = inkOf(contextOf(drawing).getImageData(0, 0, drawing.width, drawing.height).data, drawing.width);
  if (!ink) return canvas;
  const factor = INK_SHARE * Math.min(width / ink.width, height / ink.height);
  const x = width / 2 - (ink.x - ink.left) * factor;
  const y = height / 2 - (ink.y - ink.top) * factor;
  const small = shrink(drawing, ink, factor);
  context.drawImage(small, x, y, ink.width * factor, ink.height * factor);
  return canvas;
}

/**
 * By halves: one big step would leave out pixels.
 *
 * @param {HTMLCanvasElement} source
 * @param {{ readonly left: number, readonly top: number, readonly width: number, readonly height: number }} box
 * @param {number} factor
 */
function shrink(source, { left, top, width, height }, factor) {
  let { canvas, context } = blank(width, height);
  context.drawImage(source, left, top, width, height, 0, 0, width, height);
  for (let share = 0.5; share > factor && width * share >= 1 && height * share >= 1; share /= 2) {
    const next = blank(Math.ceil(width * share), Math.ceil(height * share));
    next.context.drawImage(canvas, 0, 0, next.canvas.width, next.canvas.height);
    ({ canvas } = next);
  }
  return canvas;
}

/**
 * The middle of a picture, as large as the layout wants it.
 *
 * @param {ImageBitmap} picture
 * @param {Layout} layout
 */
export function cropped(picture, { width, height }) {
  const { canvas, context } = blank(width, height);
  const factor = Math.max(width / picture.width, height / picture.height);
  const [w, h] = [picture.width * factor, picture.height * factor];
  context.drawImage(picture, (width - w) / 2, (height - h) / 2, w, h);
  return canvas;
}
