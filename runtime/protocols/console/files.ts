// The console's pages: files beside this one. They are imported, as texts, when somebody first asks for them: so they
// are part of the module graph, and there wherever the server's code is.
import { ModelError, quote } from "../../core/error.ts";

const TYPES = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  txt: "text/plain; charset=utf-8",
  proto: "text/plain; charset=utf-8",
} as const;

type TextModule = Promise<{ readonly default: unknown }>;

/** What may be asked for: nothing else can be read. `import()` is told by literals, which Deno finds beforehand. */
const FILES: Readonly<Record<string, () => TextModule>> = {
  "api.js": () => import("./static/api.js", { with: { type: "text" } }),
  "app.js": () => import("./static/app.js", { with: { type: "text" } }),
  "base.css": () => import("./static/base.css", { with: { type: "text" } }),
  "call_panel.js": () => import("./static/call_panel.js", { with: { type: "text" } }),
  "canvas.js": () => import("./static/canvas.js", { with: { type: "text" } }),
  "chat_panel.js": () => import("./static/chat_panel.js", { with: { type: "text" } }),
  "chat_store.js": () => import("./static/chat_store.js", { with: { type: "text" } }),
  "code_panel.js": () => import("./static/code_panel.js", { with: { type: "text" } }),
  "feed.js": () => import("./static/feed.js", { with: { type: "text" } }),
  "form.js": () => import("./static/form.js", { with: { type: "text" } }),
  "format.js": () => import("./static/format.js", { with: { type: "text" } }),
  "function_page.js": () => import("./static/function_page.js", { with: { type: "text" } }),
  "history.js": () => import("./static/history.js", { with: { type: "text" } }),
  "image.js": () => import("./static/image.js", { with: { type: "text" } }),
  "image_input.js": () => import("./static/image_input.js", { with: { type: "text" } }),
  "inputs.js": () => import("./static/inputs.js", { with: { type: "text" } }),
  "layout.css": () => import("./static/layout.css", { with: { type: "text" } }),
  "main.js": () => import("./static/main.js", { with: { type: "text" } }),
  "outputs.js": () => import("./static/outputs.js", { with: { type: "text" } }),
  "overview.js": () => import("./static/overview.js", { with: { type: "text" } }),
  "page.html": () => import("./static/page.html", { with: { type: "text" } }),
  "params.js": () => import("./static/params.js", { with: { type: "text" } }),
  "parts.css": () => import("./static/parts.css", { with: { type: "text" } }),
  "plot.js": () => import("./static/plot.js", { with: { type: "text" } }),
  "snippet_values.js": () => import("./static/snippet_values.js", { with: { type: "text" } }),
  "snippets.js": () => import("./static/snippets.js", { with: { type: "text" } }),
  "snippets_python.js": () => import("./static/snippets_python.js", { with: { type: "text" } }),
  "snippets_shell.js": () => import("./static/snippets_shell.js", { with: { type: "text" } }),
  "snippets_typescript.js": () => import("./static/snippets_typescript.js", { with: { type: "text" } }),
  "state.js": () => import("./static/state.js", { with: { type: "text" } }),
  "stream.js": () => import("./static/stream.js", { with: { type: "text" } }),
  "tabs.js": () => import("./static/tabs.js", { with: { type: "text" } }),
  "tensor_text.js": () => import("./static/tensor_text.js", { with: { type: "text" } }),
  "view.js": () => import("./static/view.js", { with: { type: "text" } }),
  "wire.js": () => import("./static/wire.js", { with: { type: "text" } }),
  "vendor/htm.js": () => import("./static/vendor/htm.js", { with: { type: "text" } }),
  "vendor/licenses.txt": () => import("./static/vendor/licenses.txt", { with: { type: "text" } }),
  "vendor/preact.js": () => import("./static/vendor/preact.js", { with: { type: "text" } }),
  "vendor/preact_hooks.js": () => import("./static/vendor/preact_hooks.js", { with: { type: "text" } }),
  "vendor/uplot.css": () => import("./static/vendor/uplot.css", { with: { type: "text" } }),
  "vendor/uplot.js": () => import("./static/vendor/uplot.js", { with: { type: "text" } }),
  "protos/inference.proto": () => import("../../../protos/inference.proto", { with: { type: "text" } }),
  "protos/model_inference.proto": () =>
    import("../../../protos/inference/v1/model_inference.proto", { with: { type: "text" } }),
};

// No inline script or style, and nothing from anywhere else.
const SECURITY: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob: data:; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

interface StaticFile {
  readonly text: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Answers requests for the files. */
export class StaticFiles {
  readonly #files = new Map<string, Promise<StaticFile>>();

  /** The file of that name, or 304 where the browser has it. Throws `not_found`. */
  async serve(name: string, request: Request): Promise<Response> {
    const load = Object.hasOwn(FILES, name) ? FILES[name] : undefined;
    if (!load) throw new ModelError("not_found", `The console has no file ${quote(name)}`);
    let reading = this.#files.get(name);
    if (!reading) this.#files.set(name, reading = readStatic(name, load));
    const { text, headers } = await reading;
    if (request.headers.get("if-none-match") === headers.etag) return new Response(null, { status: 304, headers });
    return new Response(text, { headers });
  }
}

async function readStatic(name: string, load: () => TextModule): Promise<StaticFile> {
  const text = (await load()).default as string;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  const type = TYPES[name.slice(name.lastIndexOf(".") + 1) as keyof typeof TYPES];
  // Asked for again each time, and answered with 304: a new version of the server shows its own pages at once.
  const headers = {
    ...SECURITY,
    "content-type": type,
    "cache-control": "no-cache",
    etag: `"${digest.toHex().slice(0, 32)}"`,
  };
  return { text, headers };
}
