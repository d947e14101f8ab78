// A call in TypeScript: the project's own client.
import { GREETING, modelOf, paramsOf, valuesOf } from "./snippet_values.js";
/** @import { Subject, Value, Writer } from "./types.ts" */

/** @type {Writer} */
export const typescript = { predict, stream, chat };

/** @param {Value} value */
function tensor({ dtype, shape, count, elements }) {
  const isBig = dtype === "int64" || dtype === "uint64";
  const zero = dtype === "string" ? '""' : dtype === "bytes" ? "new Uint8Array()" : isBig ? "0n" : "0";
  /** @param {unknown} element */
  const literal = (element) => {
    if (isBig) return `${element}n`;
    if (dtype === "bool") return element ? "1" : "0";
    if (dtype === "bytes") return `Uint8Array.fromBase64(${JSON.stringify(element)})`;
    return dtype.includes("float") ? `${element}` : JSON.stringify(element);
  };
  const data = elements ? `[${elements.map(literal).join(", ")}]` : `Array(${count}).fill(${zero})`;
  return `tensor("${dtype}", ${data}, [${shape.join(", ")}])`;
}

/** @param {Subject} subject @param {string} body */
function withClient(subject, body) {
  const names = valuesOf(subject).length > 0 && body.includes("tensor(") ? "createClient, tensor" : "createClient";
  return `import { ${names} } from "tensorlet/client";

await using client = createClient(${JSON.stringify(subject.grpc)}, { model: ${JSON.stringify(modelOf(subject.fn))} });
${body}`;
}

/** @param {Subject} subject */
function inputOf(subject) {
  const tensors = valuesOf(subject).map(tensor);
  return tensors.length === 1 ? `${tensors[0]}` : `[${tensors.join(", ")}]`;
}

/** @param {Subject} subject */
function optionsOf(subject) {
  const params = paramsOf(subject);
  return Object.keys(params).length > 0 ? `{ params: ${JSON.stringify(params)} }` : "";
}

/** @param {Subject} subject */
function predict(subject) {
  const args = [inputOf(subject), optionsOf(subject)].filter(Boolean).join(", ");
  return withClient(
    subject,
    `const { outputs, latencyMs } = await client.predict(${args});
console.log(...outputs, "in", latencyMs, "ms");
`,
  );
}

const PRINT = "await Deno.stdout.write(new TextEncoder().encode(piece));";

/** @param {Subject} subject */
function stream(subject) {
  const args = [inputOf(subject), optionsOf(subject)].filter(Boolean).join(", ");
  return withClient(
    subject,
    `for await (const piece of client.stream(${args})) {
  ${PRINT}
}
`,
  );
}

/** @param {Subject} subject */
function chat(subject) {
  return withClient(
    subject,
    `await using chat = client.chat(${optionsOf(subject)});
for await (const piece of chat.send(${JSON.stringify(GREETING)})) {
  ${PRINT}
}
`,
  );
}
