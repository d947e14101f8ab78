"""The functions `echo` and `counter` as one writes them without a framework: grpcio, NumPy and a pool of threads.

    python3 server.py [--port PORT] [--threads N]
"""
import argparse
import os
import signal
import sys
import time
from concurrent import futures

import grpc
import numpy as np

# The stubs import each other by their proto paths, so their folder has to be on the path.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "gen"))
try:
    import inference_pb2
    import inference_pb2_grpc
    from inference.v1 import model_inference_pb2
    from inference.v1 import model_inference_pb2_grpc
except ImportError as error:
    sys.exit("Cannot import the stubs (%s): run ./generate.sh first" % error)

# The library's own limit of 4 MiB is too small for tensors.
MAX_BYTES = 64 * 1024 * 1024


def echo(*arrays):
    return arrays


def counter(max_tokens):
    for i in range(max_tokens):
        yield "t%d" % i


FUNCTIONS = {"echo": echo}
STREAMS = {"counter": counter}


def find(functions, name, context):
    if name not in functions:
        context.abort(grpc.StatusCode.NOT_FOUND, "No function %r" % name)
    return functions[name]


def to_tensor(array):
    return inference_pb2.TensorData(data=array.tobytes(), shape=array.shape, dtype=str(array.dtype))


def to_array(tensor):
    return np.frombuffer(tensor.data, dtype=np.dtype(tensor.dtype)).reshape(tuple(tensor.shape))


class InferenceService(inference_pb2_grpc.InferenceServiceServicer):
    def Predict(self, request, context):
        start = time.perf_counter()
        function = find(FUNCTIONS, request.model_name, context)
        try:
            inputs = [to_array(tensor) for tensor in request.inputs]
        except (TypeError, ValueError) as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "Cannot read the tensors: %s" % error)
        outputs = [to_tensor(array) for array in function(*inputs)]
        latency_ms = int((time.perf_counter() - start) * 1000)
        return inference_pb2.InferenceResponse(status="OK", outputs=outputs, latency_ms=latency_ms)


class ModelInference(model_inference_pb2_grpc.ModelInferenceServicer):
    def Predict(self, request, context):
        return self.predict(find(FUNCTIONS, request.model_id, context), request.input_tensor)

    def StreamPredict(self, request, context):
        count = request.max_tokens or 5
        for index, token in enumerate(find(STREAMS, request.model_id, context)(count)):
            yield model_inference_pb2.TokenChunk(index=index, token=token, is_final=index == count - 1)

    def BatchPredict(self, requests, context):
        # The messages have no field for the function's name: it comes in the call's metadata.
        function = find(FUNCTIONS, dict(context.invocation_metadata()).get("model-id"), context)
        results = [self.predict(function, request.features) for request in requests]
        return model_inference_pb2.BatchResult(results=results, total_processed=len(results))

    def ChatStream(self, requests, context):
        for _ in requests:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "No function here chats")
        return iter(())

    @staticmethod
    def predict(function, values):
        start = time.perf_counter()
        (output,) = function(np.array(values, dtype=np.float32))
        latency_ms = (time.perf_counter() - start) * 1000
        return model_inference_pb2.PredictResponse(
            output_tensor=output.tolist(), latency_ms=latency_ms, model_version="1"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=50051, help="0 = any")
    parser.add_argument("--threads", type=int, default=10, help="calls that run at once")
    args = parser.parse_args()

    options = [("grpc.max_receive_message_length", MAX_BYTES), ("grpc.max_send_message_length", MAX_BYTES)]
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=args.threads), options=options)
    inference_pb2_grpc.add_InferenceServiceServicer_to_server(InferenceService(), server)
    model_inference_pb2_grpc.add_ModelInferenceServicer_to_server(ModelInference(), server)
    port = server.add_insecure_port("127.0.0.1:%d" % args.port)
    server.start()
    print("serving on grpc://127.0.0.1:%d" % port, flush=True)
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: server.stop(10))
    server.wait_for_termination()


if __name__ == "__main__":
    main()
