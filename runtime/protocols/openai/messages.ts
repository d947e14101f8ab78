// The messages of a chat: all but the last are its history.
import type { ChatMessage } from "../../core/call.ts";
import { quote } from "../../core/error.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import { fieldOf, unfit } from "./body.ts";

/** A conversation that waits for its answer. */
export interface Conversation {
  readonly history: readonly ChatMessage[];
  /** The user's. */
  readonly message: ChatMessage;
}

const ROLES: Readonly<Record<string, ChatMessage["role"]>> = {
  system: "system",
  developer: "system", // its name since 2024
  user: "user",
  assistant: "assistant",
};

/** Reads `messages`. Throws `invalid_argument`. */
export function readMessages(fields: JsonObject): Conversation {
  const value = fieldOf(fields, "messages");
  if (!Array.isArray(value) || value.length === 0) {
    throw unfit("messages", value, "wanted an array of at least one message");
  }
  const history = value.map(readMessage);
  const message = history.pop()!;
  if (message.role === "user") return { history, message };
  throw unfit(`messages[${history.length}].role`, message.role, 'wanted "user": the last message is what is answered');
}

function readMessage(value: unknown, index: number): ChatMessage {
  const where = `messages[${index}]`;
  if (!isObject(value)) throw unfit(where, value, "wanted an object with role and content");
  const role = fieldOf(value, "role");
  if (typeof role !== "string" || !Object.hasOwn(ROLES, role)) {
    throw unfit(`${where}.role`, role, `wanted one of ${Object.keys(ROLES).map((name) => quote(name)).join(", ")}`);
  }
  return { role: ROLES[role]!, content: readContent(fieldOf(value, "content"), `${where}.content`) };
}

// A text, or parts that are all texts.
function readContent(content: unknown, where: string): string {
  if (typeof content === "string") return content;
  const parts = Array.isArray(content) ? content : [undefined];
  return parts.map((part) => {
    if (isObject(part) && part.type === "text" && typeof part.text === "string") return part.text;
    throw unfit(where, content, 'wanted a text, or parts of type "text"');
  }).join("");
}
