"""The Python client of the benchmarks: reads commands from stdin, a JSON object a line, and answers each with one.

    {"do": "tensor", "address": "127.0.0.1:50051", "calls": 100} -> {"ms": [4.1, ...]}

One caller, who waits for each answer before the next call. An answer that is wrong is an error: {"error": "..."}.
"""
import http.client
import json
import sys
import threading
import time

import grpc
import numpy as np

import inference_pb2
import inference_pb2_grpc
from inference.v1 import model_inference_pb2
from inference.v1 import model_inference_pb2_grpc

# A picture as one decodes it: 0 to 255, scaled to 0..1.
IMAGE = (np.random.default_rng(1).integers(0, 256, (1, 224, 224, 3)) / 255).astype(np.float32)
TIMEOUT = 60
TEXTS, TOKENS = 8, 120

channels = {}


def stubs(address):
    if address not in channels:
        limits = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
        channel = grpc.insecure_channel(address, options=limits)
        tensors = inference_pb2_grpc.InferenceServiceStub(channel)
        channels[address] = tensors, model_inference_pb2_grpc.ModelInferenceStub(channel)
    return channels[address]


def to_tensor(array):
    return inference_pb2.TensorData(data=array.tobytes(), shape=array.shape, dtype=str(array.dtype))


def to_array(tensor):
    return np.frombuffer(tensor.data, dtype=np.dtype(tensor.dtype)).reshape(tuple(tensor.shape))


def expect(condition, what):
    if not condition:
        raise AssertionError("A wrong answer to %s" % what)


def measure(calls, call, is_right, what):
    """Milliseconds of each call. Every answer is looked at, outside of the time."""
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        answer = call()
        times.append((time.perf_counter() - start) * 1000)
        expect(is_right(answer), what)
    return {"ms": times}


def tensor(address, calls):
    """602 KB as bytes: the call alone."""
    predict = stubs(address)[0].Predict
    request = inference_pb2.InferenceRequest(model_name="echo", inputs=[to_tensor(IMAGE)])
    data = request.inputs[0].data
    return measure(calls, lambda: predict(request, timeout=TIMEOUT), lambda it: it.outputs[0].data == data, "a tensor")


def floats(address, calls):
    """150,528 packed floats: the call alone."""
    predict = stubs(address)[1].Predict
    request = model_inference_pb2.PredictRequest(model_id="echo", input_tensor=IMAGE.ravel().tolist())
    count = IMAGE.size
    return measure(
        calls, lambda: predict(request, timeout=TIMEOUT), lambda it: len(it.output_tensor) == count, "floats"
    )


def small(address, calls):
    """Three floats."""
    predict = stubs(address)[1].Predict
    request = model_inference_pb2.PredictRequest(model_id="echo", input_tensor=[1, 2, 3])
    return measure(calls, lambda: predict(request, timeout=TIMEOUT), lambda it: len(it.output_tensor) == 3, "floats")


def stream(address, calls):
    """Streams of 100 tokens: how long each took, and when its first token was there."""
    request = model_inference_pb2.PredictRequest(model_id="counter", max_tokens=100)
    times, firsts = [], []
    for _ in range(calls):
        start = time.perf_counter()
        chunks = stubs(address)[1].StreamPredict(request, timeout=TIMEOUT)
        next(chunks)
        firsts.append((time.perf_counter() - start) * 1000)
        count = 1 + sum(1 for _ in chunks)
        times.append((time.perf_counter() - start) * 1000)
        expect(count == 100, "a stream")
    return {"ms": times, "firsts": firsts}


def array_by_grpc(address, calls):
    """An array goes out, an array comes back."""
    predict = stubs(address)[0].Predict

    def call():
        request = inference_pb2.InferenceRequest(model_name="echo", inputs=[to_tensor(IMAGE)])
        return to_array(predict(request, timeout=TIMEOUT).outputs[0])

    return measure(calls, call, lambda it: np.array_equal(it, IMAGE), "an array")


def array_by_json(address, calls):
    """The same by JSON over HTTP, on one connection."""
    connection = http.client.HTTPConnection(address, timeout=TIMEOUT)

    def call():
        tensor = {"dtype": str(IMAGE.dtype), "shape": IMAGE.shape, "data": IMAGE.ravel().tolist()}
        body = json.dumps({"inputs": [tensor]})
        connection.request("POST", "/predict", body, {"content-type": "application/json"})
        output = json.loads(connection.getresponse().read())["outputs"][0]
        return np.array(output["data"], dtype=output["dtype"]).reshape(output["shape"])

    try:
        return measure(calls, call, lambda it: np.array_equal(it, IMAGE), "an array as JSON")
    finally:
        connection.close()


def texts(address, at_once):
    """Texts of a language model, at once or one after the other: tokens, and when the first of each came."""
    predict = stubs(address)[1].StreamPredict
    counts, firsts = [0] * TEXTS, [0.0] * TEXTS
    start = time.perf_counter()

    def write(i):
        params = {"prompt": "Emma was", "seed": str(i + 1), "temperature": "0.8"}
        request = model_inference_pb2.PredictRequest(model_id="austen", max_tokens=TOKENS, params=params)
        for _ in predict(request, timeout=TIMEOUT):
            if counts[i] == 0:
                firsts[i] = (time.perf_counter() - start) * 1000
            counts[i] += 1

    threads = [threading.Thread(target=write, args=(i,)) for i in range(TEXTS)]
    for thread in threads:
        thread.start()
        if not at_once:
            thread.join()
    for thread in threads:
        thread.join()
    expect(min(counts) > 0, "a prompt")
    return {"ms": [(time.perf_counter() - start) * 1000], "tokens": sum(counts), "firsts": firsts}


def large(address, bytes):
    """One tensor of so many bytes."""
    array = np.zeros(bytes // 4, np.float32)
    request = inference_pb2.InferenceRequest(model_name="echo", inputs=[to_tensor(array)])
    answer = stubs(address)[0].Predict(request, timeout=TIMEOUT)
    expect(len(answer.outputs[0].data) == array.nbytes, "a large tensor")
    return {"ms": []}


COMMANDS = {f.__name__: f for f in (tensor, floats, small, stream, array_by_grpc, array_by_json, texts, large)}


def main():
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = COMMANDS[command.pop("do")](**command)
        except Exception as error:  # the benchmark tells it, and goes on with the others
            code = error.code().name + ": " if isinstance(error, grpc.Call) else ""
            answer = {"error": code + (error.details() if code else "%s: %s" % (type(error).__name__, error))}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
