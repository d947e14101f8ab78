// The parameters of a call, each as its kind asks for.
import { html } from "./view.js";
/** @import { PanelProps } from "./call_panel.js" */
/** @import { FunctionJson } from "../messages.ts" */

/** @typedef {NonNullable<FunctionJson["params"]>[string]} ParamSpec */

/** @param {PanelProps} props */
export function Params({ fn, form, setForm }) {
  if (!fn.params) {
    const onInput = (/** @type {{ currentTarget: HTMLTextAreaElement }} */ { currentTarget: { value } }) =>
      setForm((before) => ({ ...before, more: value }));
    return html`
      <details class="more">
        <summary>Parameters</summary>
        <label class="field">Any, as JSON
          <textarea rows="2" spellcheck="false" value=${form
            .more} onInput=${onInput} placeholder='{"name": "value"}'></textarea>
        </label>
      </details>
    `;
  }
  const params = Object.entries(fn.params);
  if (params.length === 0) return null;
  /** @param {string} name @param {string} value */
  const set = (name, value) => setForm((before) => ({ ...before, params: { ...before.params, [name]: value } }));
  return html`
    <div class="params">
      ${params.map(([name, spec]) =>
        html`<${Param} key=${name} name=${name} spec=${spec} value=${form.params[name] ?? ""} onChange=${set} />`
      )}
    </div>
  `;
}

/** @param {{ name: string, spec: ParamSpec, value: string, onChange: (name: string, value: string) => void }} props */
function Param({ name, spec, value, onChange }) {
  const id = `param-${name}`;
  const onInput = (/** @type {{ currentTarget: { value: string } }} */ { currentTarget }) =>
    onChange(name, currentTarget.value);
  const common = { id, value, onInput, "aria-describedby": `${id}-hint` };
  return html`
    <div class=${`field ${isLong(spec) ? "long" : ""}`}>
      <label for=${id}>${name}</label>
      <${Control} spec=${spec} common=${common} />
      <small id=${`${id}-hint`}>${hintOf(spec)}</small>
    </div>
  `;
}

/** @param {ParamSpec} spec */
const isLong = (spec) => spec.type === "string" && !spec.enum;

/** @param {{ spec: ParamSpec, common: Record<string, unknown> }} props */
function Control({ spec, common }) {
  const options = spec.type === "boolean" ? ["true", "false"] : spec.type === "string" ? spec.enum : undefined;
  if (options) {
    const first = spec.default === undefined ? "" : `${spec.default}`;
    return html`
      <select ...${common}>
        <option value="">${first === "" ? "not sent" : `default: ${first}`}</option>
        ${options.map((option) => html`<option key=${option} value=${option}>${option}</option>`)}
      </select>
    `;
  }
  if (spec.type === "string") {
    return html`<textarea rows="3" ...${common} placeholder=${spec.default ?? ""}></textarea>`;
  }
  const { min, max, default: byDefault } = /** @type {{ min?: number, max?: number, default?: number }} */ (spec);
  return html`
    <input type="number" ...${common} min=${min} max=${max} step=${spec.type === "integer" ? 1 : "any"}
      placeholder=${byDefault ?? ""} />
  `;
}

/** @param {ParamSpec} spec */
function hintOf(spec) {
  const { min, max } = /** @type {{ min?: number, max?: number }} */ (spec);
  const bounds = min !== undefined && max !== undefined
    ? `${min} to ${max}`
    : min !== undefined
    ? `from ${min}`
    : max !== undefined
    ? `up to ${max}`
    : "";
  return [spec.description, bounds].filter(Boolean).join("; ");
}
