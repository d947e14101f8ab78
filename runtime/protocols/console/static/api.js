// Calls of the server's API.
/** @import { FunctionJson, StreamEvent } from "../messages.ts" */

const API = "/console/api";

/**
 * What tells a version of a function from all others.
 *
 * @param {FunctionJson} fn
 */
export const keyOf = (fn) => `${fn.name}@${fn.version}`;

/** The server's events, once a second. */
export const openFeed = () => new EventSource(`${API}/events`);

/**
 * Calls a function. Rejects with what the server says.
 *
 * @param {FunctionJson} fn
 * @param {"predict" | "stream" | "chat"} kind
 * @param {unknown} body
 * @param {AbortSignal} signal
 * @returns {Promise<Response>}
 */
export async function post(fn, kind, body, signal) {
  const response = await fetch(`${API}/functions/${encodeURIComponent(keyOf(fn))}/${kind}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal,
  }).catch((error) => {
    throw signal.aborted ? error : new Error("The server cannot be reached");
  });
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({}));
  throw new Error(typeof error === "string" ? error : `The server answered ${response.status}`);
}

/**
 * The events of a stream's response.
 *
 * @param {Response} response
 * @returns {AsyncGenerator<StreamEvent, void, undefined>}
 */
export async function* eventsOf(response) {
  const reader = /** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (response.body)
    .pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (text + value).split("\n\n");
    text = /** @type {string} */ (events.pop());
    for (const event of events) yield JSON.parse(event.slice("data: ".length));
  }
}
