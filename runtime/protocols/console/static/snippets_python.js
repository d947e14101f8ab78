// A call in Python: gRPC, with the server's own .proto files.
import { nest } from "./tensor_text.js";
import { fitsV1, GREETING, modelOf, textParamsOf, valuesOf } from "./snippet_values.js";
/** @import { JsonElement } from "../messages.ts" */
/** @import { Subject, Value, Writer } from "./types.ts" */

/** @type {Writer} */
export const python = { predict, stream, chat };

/**
 * JSON's texts and numbers are Python's, too.
 *
 * @param {unknown} value
 */
const literal = (value) => typeof value === "boolean" ? value ? "True" : "False" : JSON.stringify(value);

/** @param {JsonElement} element @param {string} dtype */
function element(element, dtype) {
  if (typeof element === "string" && dtype.includes("float")) return `float("${element}")`;
  return /int64/.test(dtype) ? `${element}` : literal(element);
}

/** @param {Value} value */
function array({ dtype, shape, elements }) {
  const dims = `(${shape.join(", ")}${shape.length === 1 ? "," : ""})`;
  // NumPy has no bfloat16: its zeros are those of any two bytes.
  if (dtype === "bfloat16") return `np.zeros(${dims}, "uint16")`;
  const type = dtype === "string" ? "str" : dtype;
  if (!elements || dtype === "bytes") return `np.zeros(${dims}, ${literal(dtype === "bytes" ? "S1" : type)})`;
  const data = elements.map((each) => element(each, dtype)).join(", ");
  const reshape = shape.length === 1 ? "" : `.reshape(${dims})`;
  return `np.array([${data}], ${literal(type)})${reshape}`;
}

/** @param {Readonly<Record<string, unknown>>} params */
const items = (params) =>
  Object.entries(params).map(([name, value]) => `${literal(name)}: ${literal(value)}`).join(", ");

/** @param {Readonly<Record<string, unknown>>} params @param {string} prefix */
const pairs = (params, prefix) =>
  Object.entries(params).map(([name, value]) => `(${literal(prefix + name)}, ${literal(String(value))})`);

/** @param {Subject} subject */
function predict(subject) {
  const { fn, body, http, grpc } = subject;
  const metadata = pairs(body.params, "param-");
  const inputs = valuesOf(subject).map((value) => {
    const dtype = value.dtype === "bfloat16" ? ', "bfloat16"' : "";
    return `        tensor(${array(value)}${dtype}),\n`;
  });
  return `# pip install grpcio-tools numpy
# curl -sO ${http}/console/protos/inference.proto
import grpc
import numpy as np

messages, services = grpc.protos_and_services("inference.proto")


def tensor(array, dtype=None):
    return messages.TensorData(data=array.tobytes(), shape=array.shape, dtype=dtype or array.dtype.str)


request = messages.InferenceRequest(
    model_name=${literal(modelOf(fn))},
    inputs=[
${inputs.join("")}    ],
)
with grpc.insecure_channel(${literal(grpc)}) as channel:
    stub = services.InferenceServiceStub(channel)
    response = stub.Predict(request, timeout=60${metadata.length > 0 ? `, metadata=[${metadata.join(", ")}]` : ""})
for output in response.outputs:
    print(np.frombuffer(output.data, output.dtype).reshape(output.shape))
`;
}

/** @param {Subject} subject */
function stream(subject) {
  const { fn, http, grpc } = subject;
  const values = valuesOf(subject);
  if (!fitsV1(values)) return byHttp(subject);
  const [value] = values;
  const params = textParamsOf(subject);
  const lines = [
    `model_id=${literal(modelOf(fn))},`,
    ...value
      ? [`input_tensor=${value.elements ? nest(value.elements, [value.count]) : `[0.0] * ${value.count}`},`]
      : [],
    ...Object.keys(params).length > 0 ? [`params={${items(params)}},`] : [],
  ];
  return `${v1Head(http)}
request = messages.PredictRequest(
    ${lines.join("\n    ")}
)
with grpc.insecure_channel(${literal(grpc)}) as channel:
    for chunk in services.ModelInferenceStub(channel).StreamPredict(request):
        print(chunk.token, end="", flush=True)
print()
`;
}

/** @param {string} http */
const v1Head = (http) =>
  `# pip install grpcio-tools
# curl -sO ${http}/console/protos/model_inference.proto
import grpc

messages, services = grpc.protos_and_services("model_inference.proto")
`;

/** @param {Subject} subject */
function chat({ fn, body, http, grpc }) {
  const metadata = [`("model-id", ${literal(modelOf(fn))})`, ...pairs(body.params, "param-")];
  return `${v1Head(http)}
def say(*texts):  # the first message begins the session, the others go on with it
    for text in texts:
        yield messages.UserMessage(content=text)


with grpc.insecure_channel(${literal(grpc)}) as channel:
    stub = services.ModelInferenceStub(channel)
    for piece in stub.ChatStream(say(${literal(GREETING)}), metadata=[${metadata.join(", ")}]):
        print(piece.content, end="", flush=True)
print()
`;
}

/**
 * The protocol's streams have other inputs.
 *
 * @param {Subject} subject
 */
function byHttp(subject) {
  const { fn, body: { params }, http } = subject;
  const inputs = valuesOf(subject).map(({ name, dtype, shape, count, elements }) => {
    const data = elements ? `json.loads(${literal(JSON.stringify(elements))})` : `[0] * ${count}`;
    return `        ${literal(name)}: {"dtype": ${literal(dtype)}, "shape": ${literal(shape)}, "data": ${data}},\n`;
  });
  return `import json
import urllib.request

body = {
    "inputs": {
${inputs.join("")}    },
    "params": json.loads(${literal(JSON.stringify(params))}),
}
request = urllib.request.Request(
    ${literal(`${http}/console/api/functions/${encodeURIComponent(modelOf(fn))}/stream`)},
    json.dumps(body).encode(),
    {"Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as events:
    for line in events:
        if line.startswith(b"data: "):
            print(json.loads(line[6:]))
`;
}
