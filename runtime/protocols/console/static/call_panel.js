// A form to call a function, and its answer: as a whole, or as it comes.
import { post } from "./api.js";
import { bodyOf } from "./form.js";
import { formatMs, formatNumber } from "./format.js";
import { Inputs } from "./inputs.js";
import { Outputs } from "./outputs.js";
import { Params } from "./params.js";
import { useStream } from "./stream.js";
import { html, useEffect, useRef, useState } from "./view.js";
/** @import { FunctionJson, PredictJson } from "../messages.ts" */
/** @import { Form, SetForm } from "./types.ts" */

/** @typedef {{ fn: FunctionJson, form: Form, setForm: SetForm }} PanelProps */

/** @param {PanelProps & { kind: "predict" | "stream" }} props */
export function CallPanel({ fn, kind, form, setForm }) {
  const predict = usePredict();
  const stream = useStream();
  const { isRunning } = kind === "predict" ? predict : stream;
  const call = () => {
    if (isRunning) return;
    if (kind === "predict") predict.run(fn, () => bodyOf(fn, form));
    else stream.run(fn, "stream", () => bodyOf(fn, form));
  };
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    call();
  };
  return html`
    <div class="call">
      <form class="card" onKeyDown=${onKey} onSubmit=${(/** @type {Event} */ event) => {
        event.preventDefault();
        call();
      }}>
        <h2 class="hidden">The call</h2>
        <${Inputs} fn=${fn} form=${form} setForm=${setForm} />
        <${Params} fn=${fn} form=${form} setForm=${setForm} />
        <p class="actions">
          <button type="submit" class="primary" aria-disabled=${isRunning}>
            ${kind === "predict" ? "Predict" : "Stream"}
          </button>
          ${isRunning &&
            html`<button type="button" onClick=${kind === "predict" ? predict.stop : stream.stop}>Stop</button>`}
          <span class="dim keys">Ctrl + Enter</span>
        </p>
      </form>
      <section class="card answer" aria-label="Answer" aria-busy=${isRunning}>
        ${kind === "predict" ? html`<${Prediction} ...${predict} />` : html`<${StreamAnswer} stream=${stream} />`}
      </section>
    </div>
  `;
}

/** One call at a time; it ends with the panel. */
function usePredict() {
  const [answer, setAnswer] = useState(/** @type {PredictJson | undefined} */ (undefined));
  const [error, setError] = useState("");
  const [isRunning, setRunning] = useState(false);
  const abort = useRef(new AbortController());
  useEffect(() => () => abort.current.abort(), []);
  /** @param {FunctionJson} fn @param {() => unknown} makeBody */
  const run = async (fn, makeBody) => {
    const { signal } = abort.current = new AbortController();
    setRunning(true);
    try {
      const response = await post(fn, "predict", makeBody(), signal);
      setAnswer(await response.json());
      setError("");
    } catch (thrown) {
      setAnswer(undefined);
      setError(signal.aborted ? "Stopped" : messageOf(thrown));
    } finally {
      setRunning(false);
    }
  };
  return { answer, error, isRunning, run, stop: () => abort.current.abort() };
}

/** @param {unknown} thrown */
const messageOf = (thrown) => thrown instanceof Error ? thrown.message : String(thrown);

/** @param {{ answer: PredictJson | undefined, error: string, isRunning: boolean }} props */
function Prediction({ answer, error, isRunning }) {
  return html`
    <p class="figures" role="status">
      ${isRunning
        ? "Running"
        : answer
        ? html`Answered in <b>${formatMs(answer.latencyMs)}</b> by version ${answer.version}`
        : ""}
    </p>
    ${error && html`<p class="error" role="alert">${error}</p>`}
    ${answer && html`<${Outputs} outputs=${answer.outputs} />`}
    ${!answer && !error && !isRunning && html`<p class="dim empty">The answer comes here.</p>`}
  `;
}

/** @param {{ stream: import("./stream.js").Stream }} props */
function StreamAnswer({ stream: { text, outputs, error, figures, isRunning } }) {
  const { tokens, firstMs, perSecond } = figures;
  const isEmpty = text === "" && outputs.length === 0;
  return html`
    <dl class="counts" aria-label="Figures">
      <div><dt>first token</dt><dd>${formatMs(firstMs)}</dd></div>
      <div><dt>tokens</dt><dd>${formatNumber(tokens)}</dd></div>
      <div><dt>tokens/s</dt><dd>${perSecond === undefined ? "–" : formatNumber(perSecond)}</dd></div>
    </dl>
    <p class="hidden" role="status">${isRunning ? "Running" : isEmpty ? "" : "Ended"}</p>
    ${text !== "" && html`<p class=${`text ${isRunning ? "running" : ""}`}>${text}</p>`}
    ${outputs.map((each) => html`<${Outputs} outputs=${each} />`)}
    ${error && html`<p class="error" role="alert">${error}</p>`}
    ${isEmpty && !error &&
      html`<p class="dim empty">${
        isRunning ? "Waiting for the first token" : "The answer comes here, as it is made."
      }</p>`}
  `;
}
