// Where a function is in its life.
import { html } from "./view.js";
/** @import { FunctionJson } from "../messages.ts" */

/** @type {Readonly<Record<FunctionJson["state"], string>>} */
const LABELS = {
  registered: "idle",
  loading: "loading",
  ready: "ready",
  draining: "draining",
  unloaded: "unloaded",
  failed: "failed",
};

/** @param {{ state: FunctionJson["state"] }} props */
export function State({ state }) {
  return html`<span class=${`state ${state}`}>${LABELS[state]}</span>`;
}
