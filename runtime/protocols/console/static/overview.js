// What the server does, and what it serves.
import { keyOf } from "./api.js";
import { formatBytes, formatMs, formatNumber } from "./format.js";
import { Plot } from "./plot.js";
import { State } from "./state.js";
import { html } from "./view.js";
/** @import { Feed } from "./feed.js" */
/** @import { Line } from "./plot.js" */
/** @import { CatalogJson, FunctionJson, ActivityJson } from "../messages.ts" */

/** @type {readonly Line[]} */
const RATE = [
  { key: "rate", label: "calls", color: "--plot-1" },
  { key: "failures", label: "failures", color: "--plot-bad" },
];
/** @type {readonly Line[]} */
const LATENCY = [
  { key: "p50", label: "p50", color: "--plot-1" },
  { key: "p95", label: "p95", color: "--plot-2" },
  { key: "p99", label: "p99", color: "--plot-3" },
];
/** @type {readonly Line[]} */
const TOKENS = [{ key: "tokens", label: "tokens", color: "--plot-1" }];
/** @type {readonly Line[]} */
const MEMORY = [{ key: "memory", label: "resident", color: "--plot-1" }];

/** @param {{ feed: Feed, catalog: CatalogJson }} props */
export function Overview({ feed: { history: { samples }, activity }, catalog }) {
  const { process, processes, functions } = catalog;
  return html`
    <header class="title"><h1>Overview</h1></header>
    ${processes > 1 && html`
      <p class="note">
        Process ${process} of ${processes}: figures and plots are of this process alone; <a href="/metrics">/metrics</a> has
        all of them.
      </p>
    `}
    <section aria-labelledby="plots">
      <h2 id="plots" class="hidden">The last two minutes</h2>
      <div class="plots">
        <${Plot} title="Calls a second" lines=${RATE} samples=${samples} format=${formatNumber} />
        <${Plot} title="Latency, last 10 s" lines=${LATENCY} samples=${samples} format=${formatMs} />
        <${Plot} title="Tokens a second" lines=${TOKENS} samples=${samples} format=${formatNumber} />
        <${Plot} title="Memory" lines=${MEMORY} samples=${samples} format=${formatBytes} />
      </div>
    </section>
    <section aria-labelledby="functions">
      <h2 id="functions">Functions</h2>
      ${functions.length === 0
        ? html`<${NoFunctions} />`
        : html`<${Functions} functions=${functions} activity=${activity} />`}
    </section>
  `;
}

function NoFunctions() {
  return html`<p class="note">There are none yet: put a file into the folder, and start again.</p>`;
}

/** @param {{ functions: readonly FunctionJson[], activity: ActivityJson | undefined }} props */
function Functions({ functions, activity }) {
  return html`
    <div class="table card" tabindex="0" role="group" aria-labelledby="functions">
      <table>
        <thead>
          <tr>
            <th>Function</th>
            <th>State</th>
            <th>Answers</th>
            <th class="number">Calls</th>
            <th class="number">Failed</th>
            <th class="number">p50</th>
            <th class="number">p99</th>
          </tr>
        </thead>
        <tbody>
          ${functions.map((fn) => {
            const counts = activity?.functions[fn.name];
            return html`
              <tr key=${keyOf(fn)}>
                <td><a href=${`#/${encodeURIComponent(keyOf(fn))}`}>${fn.name}</a> <span class="dim">${fn
                  .version}</span></td>
                <td>
                  <${State} state=${fn.state} />
                </td>
                <td>${fn.kinds.join(", ") || "–"}</td>
                <td class="number">${formatNumber(counts?.finished ?? 0)}</td>
                <td class="number">${formatNumber(counts?.failed ?? 0)}</td>
                <td class="number">${formatMs(counts?.p50)}</td>
                <td class="number">${formatMs(counts?.p99)}</td>
              </tr>
            `;
          })}
        </tbody>
      </table>
    </div>
  `;
}
