// Calls over gRPC, in memory.
import type { TestServer } from "tensorlet/testing";
import { call, type MessageResult, type Method } from "../messages.ts";
import { type Answer, type Ask, tensorOf, textOf, versionOf } from "./protocol.ts";

// deno-lint-ignore no-explicit-any
type Message = any;
/** What differs between methods. */
interface Form {
  readonly request: (ask: Ask) => object;
  readonly metadata?: (ask: Ask) => Readonly<Record<string, string>>;
  readonly text: (reply: Message) => string;
}

function asking(method: Method, { request, metadata, text }: Form) {
  return async (server: TestServer, ask: Ask): Promise<Answer> => {
    const { requestId, signal, timeoutMs } = ask;
    const { code, message, replies }: MessageResult = await call(server, method, [request(ask)], {
      metadata: { ...metadata?.(ask), ...requestId !== undefined && { "request-id": requestId } },
      ...signal && { signal },
      ...timeoutMs !== undefined && { timeoutMs },
    });
    return { code, message, text: replies.map(text).join("") };
  };
}

function inMetadata({ params = {} }: Ask): Record<string, string> {
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [`param-${name}`, `${value}`]));
}

const withModel = (ask: Ask) => ({ "model-id": ask.model, ...inMetadata(ask) });

const v1Request = (ask: Ask) => ({
  model_id: ask.model,
  input_tensor: tensorOf(ask).numbers,
  params: Object.fromEntries(Object.entries(ask.params ?? {}).map(([name, value]) => [name, `${value}`])),
  max_tokens: ask.maxTokens,
});

function oipRequest(ask: Ask) {
  const [model_name, model_version] = versionOf(ask);
  const { numbers, datatype, shape } = tensorOf(ask);
  const contents = { [datatype === "FP32" ? "fp32_contents" : "int_contents"]: numbers };
  const params = { ...ask.params, ...ask.maxTokens !== undefined && { max_tokens: ask.maxTokens } };
  const parameters = Object.entries(params).map(([name, value]) => [
    name,
    typeof value === "number" ? { double_param: value } : { string_param: value },
  ]);
  return {
    model_name,
    model_version,
    inputs: [{ name: "x", datatype, shape, contents }],
    parameters: Object.fromEntries(parameters),
  };
}

const decoder = new TextDecoder();

/** `inference.InferenceService/Predict`. */
export const askTensors = asking("tensors", {
  request: (ask) => {
    const { dtype, shape, bytes } = tensorOf(ask);
    return { model_name: ask.model, inputs: [{ dtype, shape, data: bytes }] };
  },
  metadata: inMetadata,
  text: ({ outputs: [{ data }] }) => new Float32Array(Uint8Array.from(data).buffer).join(" "),
});

/** `inference.v1.ModelInference/Predict`. */
export const askPredict = asking("predict", {
  request: v1Request,
  text: ({ output_tensor }) => output_tensor.join(" "),
});

/** `inference.v1.ModelInference/StreamPredict`. */
export const askStream = asking("stream", { request: v1Request, text: ({ token }) => token });

/** `inference.v1.ModelInference/BatchPredict`. */
export const askBatch = asking("batch", {
  request: (ask) => ({ id: "only", features: tensorOf(ask).numbers }),
  metadata: withModel,
  text: ({ results: [{ output_tensor }] }) => output_tensor.join(" "),
});

/** `inference.v1.ModelInference/ChatStream`. */
export const askChat = asking("chat", {
  request: (ask) => ({ content: textOf(ask) }),
  metadata: withModel,
  text: ({ content }) => content,
});

/** `inference.GRPCInferenceService/ModelInfer`. */
export const askInfer = asking("infer", {
  request: oipRequest,
  text: ({ outputs: [{ contents }] }) => contents.fp32_contents.join(" "),
});

/** `inference.GRPCInferenceService/ModelStreamInfer`; a failure is the stream's status, which has a code. */
export const askStreamInfer = asking("streamInfer", {
  request: oipRequest,
  metadata: () => ({ triton_grpc_error: "true" }),
  text: ({ infer_response: { outputs: [output] } }) => decoder.decode(output.contents.bytes_contents[0]),
});
