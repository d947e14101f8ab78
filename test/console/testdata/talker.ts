// Says what it is told: "endless" goes on until it is stopped, which "report" tells; "fail" fails; "count" tells the turn.
import { defineModel, ModelError } from "tensorlet";

let stopped = 0;

async function* speak(text: string): AsyncGenerator<string, void, undefined> {
  if (text === "fail") throw new ModelError("resource_exhausted", "There is no room");
  if (text === "report") return yield `stopped ${stopped}`;
  try {
    if (text === "endless") { for (let i = 0;; i++) yield `${i} `; }
    for (const word of text.split(" ")) yield `${word} `;
  } finally {
    if (text === "endless") stopped++;
  }
}

export default defineModel({
  version: "2",
  input: {},
  params: { prompt: { type: "string", default: "" }, loud: { type: "boolean", default: false } },
  stream: (_input, { params }) => speak(params.prompt),
  async *chat({ content }, { session }) {
    if (content !== "count") return yield* speak(content);
    yield `turn ${session.turn + 1}`;
  },
});
