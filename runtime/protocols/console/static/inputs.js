// The tensors of a call: drawn, dropped, or typed.
import { labelOf, specsOf } from "./form.js";
import { formatSpec } from "./format.js";
import { layoutOf } from "./image.js";
import { ImageInput } from "./image_input.js";
import { countOf, fill, isText, nest, shapeOf } from "./tensor_text.js";
import { html, useState } from "./view.js";
/** @import { PanelProps } from "./call_panel.js" */
/** @import { DType, InputValue, Spec } from "./types.ts" */

/** @type {readonly DType[]} */
const DTYPES = [
  ...["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64"],
  ...["uint8", "uint16", "uint32", "uint64", "bool", "string"],
].map((dtype) => /** @type {DType} */ (dtype));

/** An array of more elements than these is no text to edit. */
const MAX_TYPED = 4096;

/** @param {PanelProps} props */
export function Inputs({ fn, form, setForm }) {
  return specsOf(fn).map((spec) => {
    const value = form.inputs[spec.name] ?? { text: "", dtype: "float32", tensor: undefined };
    /** @param {Partial<InputValue>} change */
    const onChange = (change) =>
      setForm((before) => ({
        ...before,
        inputs: {
          ...before.inputs,
          [spec.name]: { ...(before.inputs[spec.name] ?? value), tensor: undefined, ...change },
        },
      }));
    return html`<${Input} key=${spec.name} spec=${spec} value=${value} onChange=${onChange} />`;
  });
}

/** @param {{ spec: Spec, value: InputValue, onChange: (change: Partial<InputValue>) => void }} props */
function Input({ spec, value, onChange }) {
  const layout = layoutOf(spec);
  const [isImage, setImage] = useState(layout !== undefined);
  const id = `input-${spec.name}`;
  return html`
    <fieldset class="input">
      <legend>${labelOf(spec)} <span class="dim">${formatSpec(spec)}${spec.optional ? ", optional" : ""}</span></legend>
      ${spec.description && html`<small>${spec.description}</small>`}
      ${layout && html`
        <div class="choice" role="group" aria-label="How to give it">
          <button type="button" aria-pressed=${isImage} onClick=${() => setImage(true)}>Image</button>
          <button type="button" aria-pressed=${!isImage} onClick=${() => setImage(false)}>Numbers</button>
        </div>
      `}
      ${layout && isImage
        ? html`<${ImageInput} layout=${layout} dtype=${value.dtype} onTensor=${(
          /** @type {InputValue["tensor"]} */ tensor,
        ) => onChange({ tensor })} />`
        : html`<${Typed} id=${id} spec=${spec} value=${value} onChange=${onChange} />`}
    </fieldset>
  `;
}

/** @param {{ id: string, spec: Spec, value: InputValue, onChange: (change: Partial<InputValue>) => void }} props */
function Typed({ id, spec, value, onChange }) {
  const onInput = (/** @type {{ currentTarget: HTMLTextAreaElement }} */ { currentTarget }) =>
    onChange({ text: currentTarget.value });
  const fillWith = (/** @type {boolean} */ isRandom) => {
    const tensor = fill(spec, value.dtype, isRandom);
    if (!("data" in tensor)) return;
    const isTyped = tensor.data.length <= MAX_TYPED;
    onChange(isTyped ? { text: nest(tensor.data, tensor.shape) } : { text: "", tensor });
  };
  const shape = shapeOf(spec);
  const isNumeric = !["string", "bytes"].includes(value.dtype);
  const placeholder = value.tensor
    ? `${countOf(value.tensor.shape)} numbers in shape [${value.tensor.shape.join(", ")}]`
    : isText(spec)
    ? ""
    : "[[1, 2], [3, 4]]";
  return html`
    ${spec.dtype === "any" && html`
      <label class="field inline">dtype
        <select value=${value.dtype} onChange=${(
          /** @type {{ currentTarget: HTMLSelectElement }} */ { currentTarget },
        ) => onChange({ dtype: /** @type {DType} */ (currentTarget.value) })}>
          ${DTYPES.map((dtype) => html`<option key=${dtype} value=${dtype}>${dtype}</option>`)}
        </select>
      </label>
    `}
    <textarea id=${id} aria-label=${labelOf(spec)} class=${isText(spec) ? "" : "code"} rows="4" spellcheck="false"
      value=${value.text} onInput=${onInput} placeholder=${placeholder}></textarea>
    ${shape && isNumeric && html`
      <p class="fill">
        <button type="button" class="small" onClick=${() => fillWith(false)}>Zeros</button>
        <button type="button" class="small" onClick=${() => fillWith(true)}>Random</button>
      </p>
    `}
  `;
}
