// Conversations of this page, by function. They outlive a reload of the page, not its tab.
/** @import { FunctionJson } from "../messages.ts" */
import { keyOf } from "./api.js";

/**
 * @typedef {object} Message
 * @property {"user" | "assistant" | "error"} role
 * @property {string} content
 * @property {string} [note] The answer's pace.
 */

/** @typedef {{ readonly id: string, readonly messages: readonly Message[] }} Session */

/** @param {FunctionJson} fn @returns {readonly Session[]} */
export function loadSessions(fn) {
  try {
    const sessions = JSON.parse(sessionStorage.getItem(`chat ${keyOf(fn)}`) ?? "[]");
    return sessions.length > 0 ? sessions : [newSession()];
  } catch {
    return [newSession()];
  }
}

/** @param {FunctionJson} fn @param {readonly Session[]} sessions */
export function saveSessions(fn, sessions) {
  try {
    sessionStorage.setItem(`chat ${keyOf(fn)}`, JSON.stringify(sessions));
  } catch {
    // Too much, or not allowed: they end with the page.
  }
}

/** @returns {Session} */
export function newSession() {
  // crypto.randomUUID() is only there where the page came by HTTPS, or from this machine.
  const id = Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0"));
  return { id: `console-${id.join("")}`, messages: [] };
}

/**
 * What a session is called: how it began.
 *
 * @param {Session} session
 */
export function titleOf({ messages }) {
  const first = messages[0]?.content ?? "New session";
  return first.length > 32 ? `${first.slice(0, 32)}…` : first;
}
