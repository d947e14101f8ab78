// The console's page.
import { App } from "./app.js";
import { html, render } from "./view.js";

render(html`<${App} />`, document.body);
