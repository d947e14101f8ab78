// Tensors that a function has answered: classes as bars, texts as such, all others as nested numbers.
import { formatShare, formatSpec } from "./format.js";
import { formatTensor } from "./tensor_text.js";
import { html } from "./view.js";
/** @import { JsonTensor } from "../messages.ts" */

/** Classes that are shown in their order; of more, the likeliest. */
const MAX_IN_ORDER = 12;
const MAX_LIKELIEST = 5;

/** @param {{ outputs: Readonly<Record<string, JsonTensor>> }} props */
export function Outputs({ outputs }) {
  return Object.entries(outputs).map(([name, tensor]) =>
    html`
      <section class="output" key=${name}>
        <h3>${name === "0" ? "output" : name} <span class="dim">${formatSpec(tensor)}</span></h3>
        <${Output} tensor=${tensor} />
      </section>
    `
  );
}

/** @param {{ tensor: JsonTensor }} props */
function Output({ tensor }) {
  const { dtype, data } = tensor;
  if (dtype === "string") return html`<p class="text">${data.join("\n")}</p>`;
  const shares = sharesOf(tensor);
  if (!shares) return html`<pre tabindex="0">${formatTensor(tensor)}</pre>`;
  return html`
    <${Classes} shares=${shares} />
    <details>
      <summary>Values</summary>
      <pre tabindex="0">${formatTensor(tensor)}</pre>
    </details>
  `;
}

/**
 * One row of probabilities, if that is what it is.
 *
 * @param {JsonTensor} tensor
 * @returns {readonly number[] | undefined}
 */
export function sharesOf({ dtype, shape, data }) {
  const classes = shape.at(-1) ?? 0;
  if (!dtype.includes("float") || classes < 2 || data.length !== classes) return undefined;
  const shares = data.map(Number);
  const sum = shares.reduce((total, share) => total + share, 0);
  return shares.every((share) => share >= 0 && share <= 1) && Math.abs(sum - 1) < 0.01 ? shares : undefined;
}

/** @param {{ shares: readonly number[] }} props */
function Classes({ shares }) {
  const ranked = shares.map((share, index) => ({ share, index })).sort((a, b) => b.share - a.share);
  const best = ranked[0]?.index;
  const shown = shares.length <= MAX_IN_ORDER
    ? ranked.sort((a, b) => a.index - b.index)
    : ranked.slice(0, MAX_LIKELIEST);
  return html`
    <ol class="classes" aria-label="Classes">
      ${shown.map(({ share, index }) =>
        html`
          <li key=${index} class=${index === best ? "best" : ""}>
            <span class="class">${index}</span>
            <span class="bar" aria-hidden="true"><span style=${{ width: `${share * 100}%` }}></span></span>
            <span class="share">${formatShare(share)}</span>
          </li>
        `
      )}
    </ol>
  `;
}
