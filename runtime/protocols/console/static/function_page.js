// One function: what it is, and what it answers.
import { CallPanel } from "./call_panel.js";
import { ChatPanel } from "./chat_panel.js";
import { CodePanel } from "./code_panel.js";
import { initialForm } from "./form.js";
import { formatMs, formatNumber } from "./format.js";
import { State } from "./state.js";
import { Tabs } from "./tabs.js";
import { html, useState } from "./view.js";
/** @import { CatalogJson, CountsJson, FunctionJson } from "../messages.ts" */
/** @import { Kind } from "./types.ts" */

/** @type {readonly { readonly id: Kind, readonly label: string }[]} */
const KINDS = [
  { id: "predict", label: "Predict" },
  { id: "stream", label: "Stream" },
  { id: "chat", label: "Chat" },
];

/** @param {{ fn: FunctionJson, catalog: CatalogJson, counts: CountsJson | undefined }} props */
export function FunctionPage({ fn, catalog, counts }) {
  const tabs = KINDS.filter(({ id }) => fn.kinds.includes(id));
  const [kind, setKind] = useState(tabs[0]?.id);
  const [form, setForm] = useState(() => initialForm(fn));
  return html`
    <header class="title">
      <h1>${fn.name} <span class="dim">${fn.version}</span> <${State} state=${fn.state} /></h1>
      ${fn.description && html`<p>${fn.description}</p>`}
      <${Counts} counts=${counts} />
    </header>
    ${kind === undefined
      ? html`<p class="note">${
        fn.kinds.length === 0
          ? "It cannot be loaded; the server's log says why."
          : "It takes batches alone, which a page cannot send."
      }</p>`
      : html`
        <${Tabs} label="How to call it" tabs=${tabs} chosen=${kind} onChoose=${setKind} />
        <div role="tabpanel" id=${`panel-${kind}`} aria-labelledby=${`tab-${kind}`}>
          ${kind === "chat"
            ? html`<${ChatPanel} fn=${fn} form=${form} setForm=${setForm} />`
            : html`<${CallPanel} key=${kind} fn=${fn} kind=${kind} form=${form} setForm=${setForm} />`}
        </div>
        <${CodePanel} fn=${fn} kind=${kind} form=${form} grpcPort=${catalog.grpcPort} />
      `}
  `;
}

/** @param {{ counts: CountsJson | undefined }} props */
function Counts({ counts }) {
  if (!counts) return html`<p class="dim">Not called yet, in this process.</p>`;
  const figures = [
    ["calls", formatNumber(counts.finished)],
    ["failed", formatNumber(counts.failed)],
    ["in flight", formatNumber(counts.inFlight)],
    ["p50", formatMs(counts.p50)],
    ["p99", formatMs(counts.p99)],
  ];
  return html`
    <dl class="counts">${figures.map(([label, value]) =>
      html`
        <div key=${label}>
          <dt>${label}</dt>
          <dd>${value}</dd>
        </div>
      `
    )}</dl>
  `;
}
