// The least that grpc-js can do: the same answers as the fixtures `echo` and `counter`, with no framework around them.
// On Deno as it is, on Node as the one file that `deno bundle` makes of it. Its argument is the folder `protos/`.
import process from "node:process";
import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { patchHttp2Close } from "../../runtime/transports/grpc/http2_patch.ts";

patchHttp2Close();
const protos = process.argv[2];
const options = { keepCase: true, defaults: true, longs: Number };
const tensors = loadSync(`${protos}/inference.proto`, options);
const modes = loadSync(`${protos}/inference/v1/model_inference.proto`, options);
const server = new grpc.Server({ "grpc.max_receive_message_length": -1 });
// deno-lint-ignore no-explicit-any
type Any = any;
server.addService(tensors["inference.InferenceService"] as Any, {
  Predict: (call: Any, done: Any) => done(null, { status: "OK", outputs: call.request.inputs }),
});
server.addService(modes["inference.v1.ModelInference"] as Any, {
  Predict: (call: Any, done: Any) => done(null, { output_tensor: call.request.input_tensor, model_version: "1" }),
  StreamPredict(call: Any) {
    const { max_tokens } = call.request;
    for (let index = 0; index < max_tokens; index++) {
      call.write({ index, token: `t${index}`, is_final: index === max_tokens - 1 });
    }
    call.end();
  },
  BatchPredict: () => {},
  ChatStream: () => {},
});
server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  console.log(`bare grpc-js on grpc://127.0.0.1:${port}`);
});
