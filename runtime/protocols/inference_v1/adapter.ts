// inference.v1.ModelInference: the four RPC modes, each in its own file.
import type { ProtocolAdapter } from "../adapter.ts";
import { createService } from "../codec.ts";
import { encodeWithLatency } from "../latency.ts";
import { join } from "../parts.ts";
import { answerParts } from "./answer.ts";
import { batchPredict } from "./batch.ts";
import { chatStream } from "./chat.ts";
import { predict, streamPredict } from "./predict.ts";

/** `inference.v1.ModelInference`. */
export const inferenceV1: ProtocolAdapter = (host) => {
  const service = createService("inference/v1/model_inference.proto", "inference.v1.ModelInference", {
    Predict: {
      requestFloats: "input_tensor",
      handle: (requests, rpc) => predict(host, requests, rpc),
      encode: encodeWithLatency((ms) => ms, answerParts),
    },
    StreamPredict: {
      requestFloats: "input_tensor",
      handle: (requests, rpc) => streamPredict(host, requests, rpc),
    },
    BatchPredict: {
      requestFloats: "features",
      handle: (requests, rpc) => batchPredict(host, requests, rpc),
      encode: (parts) => join(parts as readonly Uint8Array[]),
    },
    ChatStream: { handle: (requests, rpc) => chatStream(host, requests, rpc) },
  });
  return { rpc: [service] };
};
