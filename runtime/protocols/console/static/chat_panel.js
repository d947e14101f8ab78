// Conversations with a function: sessions, and the one that was chosen.
import { loadSessions, newSession, saveSessions, titleOf } from "./chat_store.js";
import { paramsOf } from "./form.js";
import { formatMs, formatNumber } from "./format.js";
import { Params } from "./params.js";
import { useStream } from "./stream.js";
import { html, useEffect, useRef, useState } from "./view.js";
/** @import { PanelProps } from "./call_panel.js" */
/** @import { Message, Session } from "./chat_store.js" */
/** @import { Figures } from "./stream.js" */

/** @param {PanelProps} props */
export function ChatPanel({ fn, form, setForm }) {
  const [sessions, setSessions] = useState(() => loadSessions(fn));
  const [chosenId, setChosen] = useState(sessions.at(-1)?.id);
  const stream = useStream();
  const chosen = /** @type {Session} */ (sessions.find(({ id }) => id === chosenId) ?? sessions[0]);
  useEffect(() => saveSessions(fn, sessions), [sessions]);
  /** @param {string} id @param {readonly Message[]} messages */
  const add = (id, messages) =>
    setSessions((before) =>
      before.map((each) => each.id === id ? { ...each, messages: [...each.messages, ...messages] } : each)
    );
  const begin = () => {
    const session = newSession();
    setSessions([...sessions, session]);
    setChosen(session.id);
  };
  /** @param {string} content */
  const send = async (content) => {
    const { id } = chosen;
    add(id, [{ role: "user", content }]);
    const { text, error, figures } = await stream.run(fn, "chat", () => ({
      sessionId: id,
      content,
      params: paramsOf(fn, form),
    }));
    /** @type {Message[]} */
    const messages = [];
    if (text !== "") messages.push({ role: "assistant", content: text, note: noteOf(figures) });
    if (error !== "") messages.push({ role: "error", content: error });
    add(id, messages);
  };
  return html`
    <div class="chat">
      <aside class="sessions" aria-label="Sessions">
        <button type="button" onClick=${begin} disabled=${stream.isRunning}>New session</button>
        <ul>
          ${sessions.map((each) =>
            html`
              <li key=${each.id}>
                <button type="button" aria-pressed=${each.id === chosen.id} disabled=${stream.isRunning} title=${each
                  .id}
                  onClick=${() => setChosen(each.id)}>${titleOf(each)}</button>
              </li>
            `
          )}
        </ul>
        <details class="more">
          <summary>Parameters</summary>
          <${Params} fn=${fn} form=${form} setForm=${setForm} />
        </details>
      </aside>
      <section class="card talk" aria-label="Conversation">
        <${Messages} messages=${chosen.messages} pending=${stream.isRunning ? stream.text : undefined} />
        <${Composer} isRunning=${stream.isRunning} onSend=${send} onStop=${stream.stop} />
      </section>
    </div>
  `;
}

/** @param {Figures} figures */
const noteOf = ({ tokens, firstMs, perSecond }) =>
  `${formatNumber(tokens)} tokens, the first after ${formatMs(firstMs)}` +
  (perSecond === undefined ? "" : `, ${formatNumber(perSecond)} a second`);

/** @param {{ messages: readonly Message[], pending: string | undefined }} props `pending`: an answer that is coming. */
function Messages({ messages, pending }) {
  const log = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    const element = log.current;
    if (element) element.scrollTop = element.scrollHeight;
  }, [messages, pending]);
  return html`
    <div class="messages" role="log" aria-label="Messages" tabindex="0" ref=${log}>
      ${messages.length === 0 && html`<p class="dim empty">Say something.</p>`}
      ${messages.map(({ role, content, note }, i) =>
        html`
          <div key=${i} class=${`message ${role}`}>
            <span class="hidden">${role === "user" ? "You:" : role === "error" ? "Failed:" : "Answer:"}</span>
            <p class="text">${content}</p>
            ${note && html`<small>${note}</small>`}
          </div>
        `
      )}
      ${pending !== undefined && html`
        <div class="message assistant" aria-live="off">
          <p class="text running">${pending}</p>
        </div>
      `}
    </div>
  `;
}

/** @param {{ isRunning: boolean, onSend: (text: string) => void, onStop: () => void }} props */
function Composer({ isRunning, onSend, onStop }) {
  const [text, setText] = useState("");
  const send = () => {
    if (isRunning || text.trim() === "") return;
    onSend(text);
    setText("");
  };
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  };
  return html`
    <form class="composer" onSubmit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      send();
    }}>
      <textarea aria-label="Message" rows="2" placeholder="Enter sends, Shift + Enter begins a line" value=${text}
        onKeyDown=${onKey} onInput=${(/** @type {{ currentTarget: HTMLTextAreaElement }} */ { currentTarget }) =>
          setText(currentTarget.value)}></textarea>
      ${isRunning
        ? html`<button key="stop" type="button" onClick=${onStop}>Stop</button>`
        : html`<button key="send" type="submit" class="primary">Send</button>`}
    </form>
  `;
}
