// A call in a shell: HTTP by curl, gRPC by grpcurl, which asks the server for its messages.
import { fitsV1, GREETING, hasPrompt, modelOf, paramsOf, textParamsOf, valuesOf } from "./snippet_values.js";
import { encode } from "./wire.js";
/** @import { JsonElement } from "../messages.ts" */
/** @import { Subject, Value, Writer } from "./types.ts" */

/** @type {Writer} */
export const curl = { predict: curlPredict, stream: curlStream, chat: curlChat };
/** @type {Writer} */
export const grpcurl = { predict: grpcurlPredict, stream: grpcurlStream, chat: grpcurlChat };

/** Stands for what is too long to be written down. */
const HOLE = "\u0000";

/**
 * A word of a shell.
 *
 * @param {string} text
 */
const quote = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/**
 * A program that prints JSON; the holes in it are printed by other ones.
 *
 * @param {string} json
 * @param {readonly string[]} fillers
 */
function printing(json, fillers) {
  const parts = json.split(HOLE).map((part) => `printf %s ${quote(part)}`);
  return `{ ${parts.flatMap((part, i) => fillers[i] ? [part, fillers[i]] : [part]).join("; ")}; }`;
}

/** @param {string} url @param {unknown} body @param {readonly string[]} [fillers] @param {string} [options] */
function post(url, body, fillers = [], options = "-s") {
  const json = JSON.stringify(body).replaceAll('"\\u0000"', HOLE);
  const command = `curl ${options} ${quote(url)} \\\n  -H 'Content-Type: application/json' \\\n  -d `;
  return fillers.length > 0 ? `${printing(json, fillers)} |\n${command}@-\n` : `${command}${quote(json)}\n`;
}

// As many zeros as there are elements, with commas between.
/** @param {Value} value */
const zeros = ({ count }) => `printf 0; printf ',0%.0s' {2..${count}}`;

/** @param {Subject} subject */
function callBody(subject) {
  const values = valuesOf(subject);
  const inputs = values.map(({ name, dtype, shape, elements }) => [name, { dtype, shape, data: elements ?? [HOLE] }]);
  return {
    body: { inputs: Object.fromEntries(inputs), params: subject.body.params },
    fillers: values.filter(({ elements }) => !elements).map(zeros),
  };
}

/** @param {Subject} subject @param {string} kind */
const urlOf = ({ fn, http }, kind) => `${http}/console/api/functions/${encodeURIComponent(modelOf(fn))}/${kind}`;

/**
 * The Open Inference Protocol's names of dtypes that it has in JSON.
 *
 * @type {Readonly<Record<string, string>>}
 */
const DATATYPES = {
  ...{ bool: "BOOL", int8: "INT8", int16: "INT16", int32: "INT32", int64: "INT64" },
  ...{ uint8: "UINT8", uint16: "UINT16", uint32: "UINT32", uint64: "UINT64" },
  ...{ float32: "FP32", float64: "FP64", string: "BYTES" },
};

// The protocol's 64-bit integers are numbers, which JavaScript's would round.
/** @param {JsonElement} element @param {string} dtype */
function exact(element, dtype) {
  if (!/int64/.test(dtype) || !/^-?\d+$/.test(`${element}`)) return element;
  return /** @type {typeof JSON & { rawJSON(text: string): unknown }} */ (JSON).rawJSON(`${element}`);
}

/** @param {Subject} subject */
function curlPredict(subject) {
  const { fn, http } = subject;
  const values = valuesOf(subject);
  if (values.some(({ dtype }) => !(dtype in DATATYPES))) {
    const { body, fillers } = callBody(subject);
    return post(urlOf(subject, "predict"), body, fillers);
  }
  const version = fn.isDefault ? "" : `/versions/${encodeURIComponent(fn.version)}`;
  const inputs = values.map(({ name, dtype, shape, elements }) => ({
    name: name === "0" ? "INPUT__0" : name,
    datatype: DATATYPES[dtype],
    shape,
    data: elements?.map((element) => exact(element, dtype)) ?? [HOLE],
  }));
  const parameters = paramsOf(subject);
  const body = { inputs, ...Object.keys(parameters).length > 0 && { parameters } };
  const fillers = values.filter(({ elements }) => !elements).map(zeros);
  return post(`${http}/v2/models/${encodeURIComponent(fn.name)}${version}/infer`, body, fillers);
}

/** @param {Subject} subject */
function curlStream(subject) {
  const { fn, http } = subject;
  if (hasPrompt(fn)) {
    const { prompt = "", ...params } = paramsOf(subject);
    return post(`${http}/v1/completions`, { model: modelOf(fn), prompt, stream: true, ...params }, [], "-sN");
  }
  const { body, fillers } = callBody(subject);
  return post(urlOf(subject, "stream"), body, fillers, "-sN");
}

/** @param {Subject} subject */
function curlChat(subject) {
  const { fn, http } = subject;
  const messages = [{ role: "user", content: GREETING }];
  return post(
    `${http}/v1/chat/completions`,
    { model: modelOf(fn), messages, stream: true, ...paramsOf(subject) },
    [],
    "-sN",
  );
}

/**
 * @param {Subject} subject
 * @param {string} method
 * @param {unknown} body
 * @param {Readonly<Record<string, unknown>>} headers
 * @param {readonly string[]} [fillers]
 */
function grpc({ grpc }, method, body, headers, fillers = []) {
  const json = JSON.stringify(body).replaceAll('["\\u0000"]', `[${HOLE}]`).replaceAll("\\u0000", HOLE);
  const flags = Object.entries(headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)} `).join("");
  const command = `grpcurl -plaintext ${flags}-d `;
  const target = `\\\n  ${quote(grpc)} ${method}\n`;
  if (fillers.length > 0) return `${printing(json, fillers)} |\n${command}@ ${target}`;
  return `${command}${quote(json)} ${target}`;
}

/** @param {Subject} subject */
function grpcurlPredict(subject) {
  const values = valuesOf(subject);
  const encoded = values.map(encode);
  const inputs = values.map(({ shape, elements }, i) => ({
    dtype: encoded[i]?.dtype,
    shape,
    data: elements ? encoded[i]?.base64 : HOLE,
  }));
  const fillers = values.flatMap(({ elements }, i) =>
    elements ? [] : [`head -c ${encoded[i]?.byteLength} /dev/zero | base64 | tr -d '\\n'`]
  );
  const headers = Object.fromEntries(
    Object.entries(subject.body.params).map(([name, value]) => [`param-${name}`, value]),
  );
  return grpc(
    subject,
    "inference.InferenceService/Predict",
    { model_name: modelOf(subject.fn), inputs },
    headers,
    fillers,
  );
}

/** @param {Subject} subject */
function grpcurlStream(subject) {
  const values = valuesOf(subject);
  if (!fitsV1(values)) return `# Streams over gRPC take one float32 tensor; over HTTP:\n${curlStream(subject)}`;
  const [value] = values;
  const body = {
    model_id: modelOf(subject.fn),
    ...value && { input_tensor: value.elements ?? [HOLE] },
    params: textParamsOf(subject),
  };
  const fillers = value && !value.elements ? [zeros(value)] : [];
  return grpc(subject, "inference.v1.ModelInference/StreamPredict", body, {}, fillers);
}

/** @param {Subject} subject */
function grpcurlChat(subject) {
  const { fn, body: { params } } = subject;
  const headers = { "model-id": modelOf(fn) };
  for (const [name, value] of Object.entries(params)) Object.assign(headers, { [`param-${name}`]: value });
  return grpc(subject, "inference.v1.ModelInference/ChatStream", { content: GREETING }, headers);
}
