// An image as an input: drawn with a mouse, a finger or the arrow keys, dropped, or chosen.
import { blank, centred, contextOf, cropped } from "./canvas.js";
import { tensorOf } from "./image.js";
import { html, useEffect, useRef, useState } from "./view.js";
/** @import { Layout, Range } from "./image.js" */
/** @import { SentTensor } from "../messages.ts" */
/** @import { DType } from "./types.ts" */

const SIDE = 280;
const PEN = 22;
/** What an arrow key moves the pen by. */
const STEP = 14;

/** @type {readonly (readonly [Range, string])[]} */
const RANGES = [
  ["unit", "0 to 1"],
  ["signed", "-1 to 1"],
  ["byte", "0 to 255"],
  ["imagenet", "ImageNet's mean and deviation"],
];

/**
 * @typedef {object} ImageInputProps
 * @property {Layout} layout
 * @property {DType} dtype
 * @property {(tensor: SentTensor | undefined) => void} onTensor
 */

/** @param {ImageInputProps} props */
export function ImageInput({ layout, dtype, onTensor }) {
  const [range, setRange] = useState(/** @type {Range} */ (dtype === "uint8" ? "byte" : "unit"));
  const [error, setError] = useState("");
  const [isOver, setOver] = useState(false);
  const [image, setImage] = useState(() => blank(layout.width, layout.height).canvas);
  const board = useRef(/** @type {HTMLCanvasElement | null} */ (null));

  useEffect(() => {
    const { data } = contextOf(image).getImageData(0, 0, layout.width, layout.height);
    onTensor(tensorOf(data, layout, range, dtype));
  }, [image, range, dtype]);
  useEffect(() => clear(), []);

  const clear = () => {
    const canvas = /** @type {HTMLCanvasElement} */ (board.current);
    contextOf(canvas).fillRect(0, 0, SIDE, SIDE);
    setImage(blank(layout.width, layout.height).canvas);
  };
  const onDrawn = () => setImage(centred(/** @type {HTMLCanvasElement} */ (board.current), layout));
  /** @param {Blob | null | undefined} file */
  const take = async (file) => {
    if (!file) return;
    const picture = await createImageBitmap(file).catch(() => undefined);
    setError(picture ? "" : "This is no image that the browser can read");
    if (!picture) return;
    const canvas = cropped(picture, layout);
    contextOf(/** @type {HTMLCanvasElement} */ (board.current)).drawImage(canvas, 0, 0, SIDE, SIDE);
    setImage(canvas);
  };
  const dropping = {
    onDragOver: (/** @type {DragEvent} */ event) => (event.preventDefault(), setOver(true)),
    onDragLeave: () => setOver(false),
    onDrop: (/** @type {DragEvent} */ event) => {
      event.preventDefault();
      setOver(false);
      take(event.dataTransfer?.files[0]);
    },
  };
  return html`
    <div class=${`image ${isOver ? "over" : ""}`} ...${dropping}>
      <${Board} board=${board} onDrawn=${onDrawn} />
      <div class="beside">
        <p><small>Draw, or drop an image. What the function gets, ${layout.width} × ${layout.height}:</small></p>
        <${Preview} image=${image} />
        <p class="actions">
          <label class="button small">Choose an image
            <input type="file" accept="image/*" onChange=${(
              /** @type {{ currentTarget: HTMLInputElement }} */ { currentTarget },
            ) => take(currentTarget.files?.[0])} />
          </label>
          <button type="button" class="small" onClick=${clear}>Clear</button>
        </p>
        <label class="field">Pixels as
          <select value=${range} onChange=${(/** @type {{ currentTarget: HTMLSelectElement }} */ { currentTarget }) =>
            setRange(/** @type {Range} */ (currentTarget.value))}>
            ${RANGES.map(([value, label]) => html`<option key=${value} value=${value}>${label}</option>`)}
          </select>
        </label>
        ${error && html`<p class="error" role="alert">${error}</p>`}
      </div>
    </div>
  `;
}

/**
 * What the function gets.
 *
 * @param {{ image: HTMLCanvasElement }} props
 */
function Preview({ image }) {
  const place = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  useEffect(() => {
    const canvas = /** @type {HTMLCanvasElement} */ (place.current);
    Object.assign(canvas, { width: image.width, height: image.height });
    contextOf(canvas).drawImage(image, 0, 0);
  }, [image]);
  return html`<canvas class="preview" ref=${place} aria-hidden="true"></canvas>`;
}

/** @param {{ board: { current: HTMLCanvasElement | null }, onDrawn: () => void }} props */
function Board({ board, onDrawn }) {
  const pen = useRef({ x: SIDE / 2, y: SIDE / 2, isDown: false });
  const [isWriting, setWriting] = useState(false);
  /** @param {number} x @param {number} y @param {boolean} isDrawing */
  const moveTo = (x, y, isDrawing) => {
    const { current } = pen;
    if (isDrawing) line(contextOf(/** @type {HTMLCanvasElement} */ (board.current)), current.x, current.y, x, y);
    Object.assign(current, { x, y });
  };
  /** @param {PointerEvent} event @param {boolean} isDrawing */
  const follow = (event, isDrawing) => {
    const canvas = /** @type {HTMLCanvasElement} */ (board.current);
    const { left, top, width, height } = canvas.getBoundingClientRect();
    moveTo((event.clientX - left) / width * SIDE, (event.clientY - top) / height * SIDE, isDrawing);
  };
  const pointer = {
    onPointerDown: (/** @type {PointerEvent} */ event) => {
      /** @type {HTMLCanvasElement} */ (event.currentTarget).setPointerCapture(event.pointerId);
      pen.current.isDown = true;
      follow(event, false);
      follow(event, true);
    },
    onPointerMove: (/** @type {PointerEvent} */ event) => pen.current.isDown && follow(event, true),
    onPointerUp: () => {
      if (pen.current.isDown) onDrawn();
      pen.current.isDown = false;
    },
  };
  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    /** @type {Record<string, readonly [number, number]>} */
    const steps = {
      ArrowLeft: [-STEP, 0],
      ArrowRight: [STEP, 0],
      ArrowUp: [0, -STEP],
      ArrowDown: [0, STEP],
      " ": [0, 0],
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    const writes = event.key === " " ? !isWriting : isWriting;
    setWriting(writes);
    const clamp = (/** @type {number} */ at) => Math.min(SIDE, Math.max(0, at));
    moveTo(clamp(pen.current.x + step[0]), clamp(pen.current.y + step[1]), writes);
    if (writes) onDrawn();
  };
  return html`
    <div class="board">
      <canvas ref=${board} width=${SIDE} height=${SIDE} tabindex="0" role="img" ...${pointer}
        onKeyDown=${onKeyDown}
        aria-label=${`A board to draw on: the arrow keys move the pen, which is ${
          isWriting ? "down" : "up"
        }; Space lifts or lowers it`}></canvas>
    </div>
  `;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} x
 * @param {number} y
 * @param {number} toX
 * @param {number} toY
 */
function line(context, x, y, toX, toY) {
  Object.assign(context, { strokeStyle: "#fff", lineWidth: PEN, lineCap: "round", lineJoin: "round" });
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(toX, toY);
  context.stroke();
}
