// A row of tabs: the arrow keys choose, Tab goes on to what was chosen.
import { html, useRef } from "./view.js";

/** @typedef {{ readonly id: string, readonly label: string }} Tab */

/**
 * Panels are the caller's: `<div role="tabpanel" id="panel-ID" aria-labelledby="tab-ID">`.
 *
 * @param {object} props
 * @param {string} props.label
 * @param {readonly Tab[]} props.tabs
 * @param {string} props.chosen
 * @param {(id: string) => void} props.onChoose
 */
export function Tabs({ label, tabs, chosen, onChoose }) {
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    const at = tabs.findIndex(({ id }) => id === chosen);
    const last = tabs.length - 1;
    /** @type {Record<string, number>} */
    const targets = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last };
    const target = tabs[targets[event.key] ?? -1];
    if (!target) return;
    event.preventDefault();
    onChoose(target.id);
    /** @type {HTMLElement | null | undefined} */ (list.current?.querySelector(`#tab-${target.id}`))?.focus();
  };
  return html`
    <div class="tabs" role="tablist" aria-label=${label} ref=${list} onKeyDown=${onKey}>
      ${tabs.map(({ id, label }) =>
        html`
          <button key=${id} type="button" role="tab" id=${`tab-${id}`} aria-selected=${id === chosen}
            aria-controls=${id === chosen ? `panel-${id}` : undefined} tabindex=${id === chosen ? 0 : -1}
            onClick=${() => onChoose(id)}>${label}</button>
        `
      )}
    </div>
  `;
}
