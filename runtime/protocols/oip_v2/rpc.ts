// inference.GRPCInferenceService: the Open Inference Protocol over gRPC, with Triton's extensions.
import { type AdapterHost, onlyRequest, type RpcService } from "../adapter.ts";
import { createService, type MethodHandler } from "../codec.ts";
import { configTypeOf } from "./datatype.ts";
import { entryOf, modelConfig, modelMetadata, SERVER_METADATA } from "./describe.ts";
import { isReady, loadModel, repositoryIndex, unloadModel } from "./repository.ts";
import { modelInfer, modelStreamInfer } from "./rpc_infer.ts";
import { modelStatistics } from "./statistics.ts";

interface ModelName {
  readonly name: string;
  readonly version: string;
}

interface RepositoryRequest {
  readonly model_name: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

const INFER: Pick<MethodHandler, "decode" | "uncounted" | "encode"> = {
  decode: (bytes) => bytes, // the handlers decode it: on a stream a request that is refused must not end it
  uncounted: "inference.InferTensorContents",
  encode: (message) => message as Uint8Array, // the handlers have encoded it
};

/** The service. */
export function createRpcService(host: AdapterHost): RpcService {
  const { catalog, health } = host;
  return createService("inference/grpc_predict_v2.proto", "inference.GRPCInferenceService", {
    ServerLive: answer(() => ({ live: true })),
    ServerReady: answer(() => ({ ready: health.status("") === "serving" })),
    ModelReady: answer(({ name, version }: ModelName) => ({ ready: isReady(host, name, version) })),
    ServerMetadata: answer(() => SERVER_METADATA),
    ModelMetadata: answer(({ name, version }: ModelName) => modelMetadata(catalog, entryOf(catalog, name, version))),
    ModelInfer: { ...INFER, handle: (requests, rpc) => modelInfer(host, requests, rpc) },
    ModelStreamInfer: { ...INFER, handle: (requests, rpc) => modelStreamInfer(host, requests, rpc) },
    ModelConfig: answer(({ name, version }: ModelName) => ({
      config: modelConfig(entryOf(catalog, name, version), configTypeOf),
    })),
    ModelStatistics: answer(({ name, version }: ModelName) => ({ model_stats: modelStatistics(host, name, version) })),
    RepositoryIndex: answer(({ ready }: { readonly ready: boolean }) => ({ models: repositoryIndex(host, ready) })),
    RepositoryModelLoad: answer(async ({ model_name: name, parameters }: RepositoryRequest) => {
      await loadModel(host, name, Object.keys(parameters));
      return {};
    }),
    RepositoryModelUnload: answer(({ model_name: name }: RepositoryRequest) => {
      unloadModel(host, name);
      return {};
    }),
  });
}

// A method that is a question with one answer.
function answer<T>(answerTo: (request: T) => object | Promise<object>): MethodHandler {
  return {
    async *handle(requests) {
      yield await answerTo(await onlyRequest<T>(requests));
    },
  };
}
