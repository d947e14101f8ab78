// The frame of the page: what is served at the side, what was chosen in the middle.
import { keyOf } from "./api.js";
import { useFeed } from "./feed.js";
import { FunctionPage } from "./function_page.js";
import { Overview } from "./overview.js";
import { State } from "./state.js";
import { html, useEffect, useRef, useState } from "./view.js";
/** @import { Feed } from "./feed.js" */
/** @import { CatalogJson } from "../messages.ts" */

const CONNECTION = { connecting: "Connecting", connected: "Connected", lost: "No connection; trying again" };

const chosen = () => {
  try {
    return decodeURIComponent(location.hash.slice("#/".length));
  } catch {
    return "";
  }
};

/** What the address names: "" = the overview. */
function useChosen() {
  const [key, setKey] = useState(chosen);
  useEffect(() => {
    const onChange = () => setKey(chosen());
    addEventListener("hashchange", onChange);
    return () => removeEventListener("hashchange", onChange);
  }, []);
  return key;
}

export function App() {
  const feed = useFeed();
  const key = useChosen();
  const main = useRef(/** @type {HTMLElement | null} */ (null));
  const isFirst = useRef(true);
  const fn = feed.catalog?.functions.find((each) => keyOf(each) === key);
  const name = fn?.name;
  useEffect(() => {
    document.title = name === undefined ? "Tensorlet" : `${name} · Tensorlet`;
  }, [name]);
  useEffect(() => {
    // Who follows a link goes on reading behind it.
    if (!isFirst.current) main.current?.focus();
    isFirst.current = false;
  }, [key]);
  const { catalog } = feed;
  return html`
    <a class="skip" href="#main" onClick=${(/** @type {Event} */ event) => {
      event.preventDefault();
      main.current?.focus();
    }}>To the content</a>
    <${Side} feed=${feed} chosenKey=${key} />
    <main id="main" tabindex="-1" ref=${main}>
      ${catalog &&
        (key === ""
          ? html`<${Overview} feed=${feed} catalog=${catalog} />`
          : fn
          ? html`<${FunctionPage} key=${key} fn=${fn} catalog=${catalog} counts=${feed.activity?.functions[fn.name]} />`
          : html`
            <header class="title">
              <h1>Not served</h1>
            </header>
            <p class="note">There is no function “${key}” (any more). <a href="#/">What is served</a></p>
          `)}
    </main>
  `;
}

/** @param {{ feed: Feed, chosenKey: string }} props */
function Side({ feed: { state, catalog }, chosenKey }) {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setOpen(false), [chosenKey]);
  return html`
    <header class="side">
      <div class="brand">
        <a class="wordmark" href="#/">Tensorlet</a>
        <button class="menu" type="button" aria-expanded=${isOpen} aria-controls="nav" onClick=${() =>
          setOpen(!isOpen)}>
          Functions
        </button>
      </div>
      <nav id="nav" class=${isOpen ? "open" : ""} aria-label="Console">
        ${catalog && html`<${Links} catalog=${catalog} chosenKey=${chosenKey} />`}
      </nav>
      <p class=${`connection ${state}`} role="status">${CONNECTION[state]}</p>
    </header>
  `;
}

/** @param {{ catalog: CatalogJson, chosenKey: string }} props */
function Links({ catalog, chosenKey }) {
  return html`
    <ul>
      <li><a href="#/" aria-current=${chosenKey === "" ? "page" : undefined}>Overview</a></li>
      ${catalog.functions.map((fn) => {
        const key = keyOf(fn);
        return html`
          <li key=${key}>
            <a href=${`#/${encodeURIComponent(key)}`} aria-current=${chosenKey === key ? "page" : undefined}>
              <span class="name">${fn.name}</span> <span class="dim">${fn.version}</span> <${State} state=${fn.state} />
            </a>
          </li>
        `;
      })}
    </ul>
  `;
}
