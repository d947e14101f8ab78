// A stream of a function as it comes, with its pace.
import { eventsOf, post } from "./api.js";
import { useEffect, useRef, useState } from "./view.js";
/** @import { FunctionJson, JsonTensor } from "../messages.ts" */

/**
 * @typedef {object} Figures
 * @property {number} tokens
 * @property {number | undefined} firstMs From the call to the first token.
 * @property {number | undefined} perSecond After the first one.
 */

/**
 * @typedef {object} Shown
 * @property {string} text
 * @property {readonly Readonly<Record<string, JsonTensor>>[]} outputs
 * @property {string} error
 * @property {Figures} figures
 * @property {boolean} isRunning
 */

/** @typedef {(fn: FunctionJson, kind: "stream" | "chat", makeBody: () => unknown) => Promise<Shown>} Run */

/** @typedef {Shown & { readonly run: Run, readonly stop: () => void }} Stream */

/** @type {Figures} */
const NO_FIGURES = { tokens: 0, firstMs: undefined, perSecond: undefined };

/** Outputs of a stream of tensors that are shown: the newest. */
const MAX_OUTPUTS = 20;

/** @returns {Shown} */
const nothing = () => ({ text: "", outputs: [], error: "", figures: NO_FIGURES, isRunning: false });

/**
 * One stream at a time; it ends with its view, and so does the function.
 *
 * @returns {Stream}
 */
export function useStream() {
  const [shown, setShown] = useState(nothing);
  const abort = useRef(new AbortController());
  useEffect(() => () => abort.current.abort(), []);
  /** @type {Run} */
  const run = async (fn, kind, makeBody) => {
    const { signal } = abort.current = new AbortController();
    const now = { ...nothing(), isRunning: true };
    // Many tokens a frame are drawn once.
    let frame = 0;
    const draw = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        if (!signal.aborted) setShown({ ...now });
      });
    };
    setShown({ ...now });
    try {
      await read(fn, kind, makeBody(), signal, now, draw);
    } catch (thrown) {
      if (!signal.aborted) now.error = thrown instanceof Error ? thrown.message : String(thrown);
    }
    cancelAnimationFrame(frame);
    now.isRunning = false;
    setShown({ ...now });
    return now;
  };
  return { ...shown, run, stop: () => abort.current.abort() };
}

/**
 * @param {FunctionJson} fn
 * @param {"stream" | "chat"} kind
 * @param {unknown} body
 * @param {AbortSignal} signal
 * @param {Shown} now Changes as the stream goes on.
 * @param {() => void} draw
 */
async function read(fn, kind, body, signal, now, draw) {
  const began = performance.now();
  let first = 0;
  for await (const event of eventsOf(await post(fn, kind, body, signal))) {
    if (event.type === "token") {
      const time = performance.now();
      const tokens = now.figures.tokens + 1;
      if (tokens === 1) first = time;
      now.text += event.text;
      now.figures = {
        tokens,
        firstMs: first - began,
        perSecond: tokens > 1 ? (tokens - 1) / Math.max(time - first, 1) * 1000 : undefined,
      };
    } else if (event.type === "tensors") {
      now.outputs = [...now.outputs, event.outputs].slice(-MAX_OUTPUTS);
    } else if (event.type === "error") {
      now.error = event.message;
    } else {
      return;
    }
    draw();
  }
  if (now.error === "") throw new Error("The connection broke before the answer's end");
}
