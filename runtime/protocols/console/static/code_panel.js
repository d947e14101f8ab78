// The call of the form as code to copy.
import { bodyOf, paramsOf } from "./form.js";
import { LANGUAGES, snippet } from "./snippets.js";
import { Tabs } from "./tabs.js";
import { html, useRef, useState } from "./view.js";
/** @import { FunctionJson } from "../messages.ts" */
/** @import { CallBody, Form, Kind, Language } from "./types.ts" */

/** @param {{ fn: FunctionJson, kind: Kind, form: Form, grpcPort: number | null }} props */
export function CodePanel({ fn, kind, form, grpcPort }) {
  const [language, setLanguage] = useState(/** @type {Language} */ ("python"));
  const tabs = LANGUAGES.filter(({ needsGrpc }) => !needsGrpc || grpcPort !== null);
  const chosen = tabs.some(({ id }) => id === language) ? language : "curl";
  const host = location.hostname;
  const code = snippet(chosen, kind, {
    fn,
    body: bodyOrSample(fn, kind, form),
    http: location.origin,
    grpc: `${host}:${grpcPort}`,
  });
  return html`
    <section class="code" aria-labelledby="code">
      <h2 id="code">Call it from your code</h2>
      <div class="card">
        <div class="codehead">
          <${Tabs} label="Language" tabs=${tabs} chosen=${chosen} onChoose=${setLanguage} />
          <${Copy} text=${code} />
        </div>
        <div role="tabpanel" id=${`panel-${chosen}`} aria-labelledby=${`tab-${chosen}`}>
          <pre tabindex="0"><code>${code}</code></pre>
        </div>
      </div>
    </section>
  `;
}

// What cannot be read (yet) is left out of the code.
/** @param {FunctionJson} fn @param {Kind} kind @param {Form} form @returns {CallBody} */
function bodyOrSample(fn, kind, form) {
  try {
    return kind === "chat" ? { inputs: {}, params: paramsOf(fn, form) } : bodyOf(fn, form);
  } catch {
    return { inputs: {}, params: {} };
  }
}

/** @param {{ text: string }} props */
function Copy({ text }) {
  const [isCopied, setCopied] = useState(false);
  const timer = useRef(0);
  const copy = async () => {
    await copyText(text);
    setCopied(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setCopied(false), 2000);
  };
  return html`
    <button type="button" class="small" onClick=${copy}>${isCopied ? "Copied" : "Copy"}</button>
    <span class="hidden" role="status">${isCopied ? "Copied" : ""}</span>
  `;
}

/** @param {string} text */
async function copyText(text) {
  if (navigator.clipboard) return await navigator.clipboard.writeText(text);
  // There is no clipboard where the page came by HTTP from another machine.
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
