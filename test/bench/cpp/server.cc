// The least that gRPC's C++ library can do: the answers of the fixtures `echo` and `counter`, by its synchronous API.
#include <grpcpp/grpcpp.h>

#include <iostream>
#include <string>

#include "inference.grpc.pb.h"
#include "inference/v1/model_inference.grpc.pb.h"

using grpc::ServerContext;
using grpc::Status;

class InferenceService final : public inference::InferenceService::Service {
  Status Predict(ServerContext*, const inference::InferenceRequest* request,
                 inference::InferenceResponse* response) override {
    response->set_status("OK");
    *response->mutable_outputs() = request->inputs();
    return Status::OK;
  }
};

class ModelInference final : public inference::v1::ModelInference::Service {
  Status Predict(ServerContext*, const inference::v1::PredictRequest* request,
                 inference::v1::PredictResponse* response) override {
    *response->mutable_output_tensor() = request->input_tensor();
    response->set_model_version("1");
    return Status::OK;
  }

  Status StreamPredict(ServerContext*, const inference::v1::PredictRequest* request,
                       grpc::ServerWriter<inference::v1::TokenChunk>* writer) override {
    inference::v1::TokenChunk chunk;
    for (uint32_t index = 0; index < request->max_tokens(); ++index) {
      chunk.set_index(index);
      chunk.set_token("t" + std::to_string(index));
      chunk.set_is_final(index + 1 == request->max_tokens());
      if (!writer->Write(chunk)) break;
    }
    return Status::OK;
  }

  Status ChatStream(ServerContext*, grpc::ServerReaderWriter<inference::v1::AssistantMessage,
                                                             inference::v1::UserMessage>* stream) override {
    inference::v1::UserMessage message;
    while (stream->Read(&message)) {
    }
    return Status::OK;
  }
};

int main() {
  InferenceService tensors;
  ModelInference modes;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(-1);
  builder.RegisterService(&tensors);
  builder.RegisterService(&modes);
  auto server = builder.BuildAndStart();
  if (!server) return 1;
  std::cout << "bare gRPC in C++ on grpc://127.0.0.1:" << port << std::endl;
  server->Wait();
}
