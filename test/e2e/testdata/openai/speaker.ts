// Says what it is told, word by word, as completion and as chat. "endless KEY" goes on until it is ended, "report KEY"
// tells whether it was; "break" fails, "busy" refuses; a chat's "history" tells what came before.
import { defineModel, ModelError } from "tensorlet";

const ended = new Set<string>();

async function* speak(text: string, signal: AbortSignal): AsyncGenerator<string, void, undefined> {
  const [command, key = ""] = text.split(" ");
  if (command === "report") return yield ended.has(key) ? "ended" : "running";
  try {
    if (command === "endless") { for (;;) yield "again "; }
    for (const word of text.split(" ")) {
      if (word === "busy") throw new ModelError("resource_exhausted", "Try later", { details: { retryAfterMs: 2500 } });
      if (word === "gone") throw new ModelError("unavailable", "Not now", { details: { retryAfterMs: 1000 } });
      if (word === "break") throw new ModelError("internal", "It broke");
      yield `${word} `;
    }
  } finally {
    if (command === "endless" && signal.aborted) ended.add(key);
  }
}

export default defineModel({
  params: { prompt: { type: "string", default: "" }, temperature: { type: "number", min: 0, max: 1 } },
  stream: (_input, ctx) => speak(ctx.params.prompt, ctx.signal),
  async *chat(message, ctx) {
    if (message.content !== "history") return yield* speak(message.content, ctx.signal);
    yield ctx.session.history.map(({ role, content }) => `${role}: ${content}`).join("\n");
  },
});
