// inference.InferenceService: tensors in, tensors out, as NumPy clients speak it.
import { findEntry } from "../../core/catalog.ts";
import { nameByPosition, nameBySender, tensorLabel } from "../../core/check.ts";
import {
  type AdapterHost,
  callBase,
  invokePredict,
  metadataParams,
  onlyRequest,
  type ProtocolAdapter,
  type RpcContext,
} from "../adapter.ts";
import { createEncoder, createService } from "../codec.ts";
import { type EncodeParts, encodeWithLatency } from "../latency.ts";
import { MIN_LARGE_BYTES, withField } from "../parts.ts";
import { decodeTensor, encodeTensor, type TensorData } from "./tensor.ts";

interface InferenceRequest {
  readonly model_name: string;
  readonly inputs: readonly TensorData[];
}

// TensorData has no field for names.
const INPUT_NAMES = "input-names";
const OUTPUT_NAMES = "output-names";

/** `inference.InferenceService`. */
export const inference: ProtocolAdapter = (host) => {
  const service = createService("inference.proto", "inference.InferenceService", {
    Predict: {
      handle: (requests, rpc) => predict(host, requests, rpc),
      encode: encodeWithLatency(Math.floor, responseParts),
    },
  });
  return { rpc: [service] };
};

async function* predict(host: AdapterHost, requests: AsyncIterable<unknown, void, undefined>, rpc: RpcContext) {
  const request = await onlyRequest<InferenceRequest>(requests);
  const entry = findEntry(host.catalog, request.model_name, "predict", "model_name");
  const names = rpc.metadata.get(INPUT_NAMES)?.split(",").map((name) => name.trim());
  const tensors = request.inputs.map((data, i) =>
    decodeTensor(data, tensorLabel("input", names?.[i] ?? entry.input?.[i]?.name ?? `${i}`))
  );
  const input = names ? nameBySender(entry.input, names, tensors) : nameByPosition(entry.input, tensors);
  const call = { ...callBase(rpc, entry, metadataParams(rpc.metadata, entry)), kind: "predict", input } as const;
  for await (const output of invokePredict(host.invoke, call)) {
    if (entry.output?.some(({ name }) => name !== "0")) {
      rpc.trailers.set(OUTPUT_NAMES, Object.keys(output).join(","));
    }
    yield { since: rpc.decodedAt(), message: Object.values(output).map(encodeTensor) };
  }
}

const encodeTensorData = createEncoder("inference.proto", "inference.TensorData");
/** `InferenceResponse.outputs`. */
const OUTPUTS = 2;
/** `TensorData.data`. */
const DATA = 1;

const responseParts: EncodeParts<readonly TensorData[]> = (outputs, encode) => {
  if (outputs.every(({ data }) => data.length < MIN_LARGE_BYTES)) return [encode({ status: "OK", outputs })];
  const status = [encode({ status: "OK" })];
  return outputs.reduce<readonly Uint8Array[]>(
    (parts, { data, ...rest }) => withField(parts, OUTPUTS, withField([encodeTensorData(rest)], DATA, [data])),
    status,
  );
};
