// A call as code in other languages, for the values of a form.
import { curl, grpcurl } from "./snippets_shell.js";
import { python } from "./snippets_python.js";
import { typescript } from "./snippets_typescript.js";
/** @import { Kind, Language, Subject, Writer } from "./types.ts" */

/** @type {readonly { readonly id: Language, readonly label: string, readonly needsGrpc: boolean }[]} */
export const LANGUAGES = [
  { id: "python", label: "Python", needsGrpc: true },
  { id: "typescript", label: "TypeScript", needsGrpc: true },
  { id: "curl", label: "curl", needsGrpc: false },
  { id: "grpcurl", label: "grpcurl", needsGrpc: true },
];

/** @type {Readonly<Record<Language, Writer>>} */
const WRITERS = { python, typescript, curl, grpcurl };

/** @param {Language} language @param {Kind} kind @param {Subject} subject */
export const snippet = (language, kind, subject) => WRITERS[language][kind](subject);
