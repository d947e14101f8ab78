"""Triton's own Python clients against a real server: what its examples call, in every datatype, over gRPC and HTTP.

The last line is "N passed, N failed".
"""
import asyncio
import functools
import os
import queue
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import tritonclient.grpc as grpcclient
import tritonclient.grpc.aio as grpcaio
import tritonclient.http as httpclient
from tritonclient.utils import InferenceServerException

from servers import ROOT, Server
from suite import play, run

FUNCTIONS = os.path.join(ROOT, "test", "e2e", "testdata", "triton")
TESTS = []

VALUES = {
    "BOOL": np.array([True, False, True]),
    "INT8": np.array([-128, 0, 127], np.int8),
    "INT16": np.array([-(2**15), 0, 2**15 - 1], np.int16),
    "INT32": np.array([-(2**31), 0, 2**31 - 1], np.int32),
    "INT64": np.array([-(2**63), 2**53 + 1, 2**63 - 1], np.int64),
    "UINT8": np.array([0, 128, 255], np.uint8),
    "UINT16": np.array([0, 1, 2**16 - 1], np.uint16),
    "UINT32": np.array([0, 1, 2**32 - 1], np.uint32),
    "UINT64": np.array([0, 2**53 + 1, 2**64 - 1], np.uint64),
    "FP16": np.array([0.5, -0.0, 65504], np.float16),
    "BF16": np.array([1.5, -3.0, 2.0**100], ml_dtypes.bfloat16),
    "FP32": np.array([0.1, -0.0, 1e-45, np.nan, np.inf, -np.inf], np.float32),
    "FP64": np.array([0.1, 5e-324, np.nan], np.float64),
    "BYTES": np.array(["Zürich", "", "北京😀"], dtype=object),
}


class Fail(Exception):
    pass


def check(cond, what):
    if not cond:
        raise Fail(what)


def test(fn):
    TESTS.append((fn.__name__, fn))
    return fn


def both(fn):
    """Over gRPC and over HTTP."""
    for name in ("grpc", "http"):
        TESTS.append(("%s (%s)" % (fn.__name__, name), functools.partial(over, name, fn)))
    return fn


def over(name, fn, t):
    module, address = (grpcclient, t.grpc) if name == "grpc" else (httpclient, t.http)
    client = module.InferenceServerClient(address)
    try:
        fn(module, client)
    finally:
        client.close()


def refused(fn, *needles):
    try:
        fn()
    except InferenceServerException as error:
        for needle in needles:
            check(needle in str(error), "%r is not in %s" % (needle, error))
        return
    raise Fail("it was not refused")


def tensor(module, name, array, datatype, **options):
    found = module.InferInput(name, list(array.shape), datatype)
    found.set_data_from_numpy(array, **options)
    return found


def pair(module):
    a = np.arange(16, dtype=np.int32).reshape(1, 16)
    return a, [tensor(module, "INPUT0", a, "INT32"), tensor(module, "INPUT1", np.ones_like(a), "INT32")]


def same(got, wanted):
    check(got is not None and got.shape == wanted.shape and np.array_equal(got, wanted, equal_nan=wanted.dtype.kind == "f"), "%s, wanted %s" % (got, wanted))


def decoded(array):
    return [item.decode() for item in array.flatten()]


@both
def live_and_ready(module, client):
    check(client.is_server_live() and client.is_server_ready(), "the server")
    check(client.is_model_ready("simple") and client.is_model_ready("simple", "1"), "the model")


@test
def metadata_over_grpc(t):
    with grpcclient.InferenceServerClient(t.grpc) as client:
        server = client.get_server_metadata(as_json=True)
        check(server["name"] == "tensorlet" and "binary_tensor_data" in server["extensions"], server)
        model = client.get_model_metadata("simple", as_json=True)
        check([i["name"] for i in model["inputs"]] == ["INPUT0", "INPUT1"] and model["inputs"][0]["shape"] == ["-1", "16"], model)
        config = client.get_model_config("simple", as_json=True)["config"]
        check(config["input"][0]["data_type"] == "TYPE_INT32" and config["backend"] == "tensorlet", config)
        check(client.get_model_config("repeat_int32").config.model_transaction_policy.decoupled, "decoupled")


@test
def metadata_over_http(t):
    with httpclient.InferenceServerClient(t.http) as client:
        check(client.get_server_metadata()["name"] == "tensorlet", "the server")
        check(client.get_model_metadata("simple", "1")["outputs"][1] == {"name": "OUTPUT1", "datatype": "INT32", "shape": [-1, 16]}, "the model")
        config = client.get_model_config("repeat_int32")
        check(config["model_transaction_policy"]["decoupled"] and config["input"][0]["data_type"] == "TYPE_INT32", config)


@both
def infer(module, client):
    a, inputs = pair(module)
    result = client.infer("simple", inputs, request_id="seven", headers={"x-test": "1"})
    same(result.as_numpy("OUTPUT0"), a + 1)
    same(result.as_numpy("OUTPUT1"), a - 1)
    response = result.get_response()
    check((response.id if module is grpcclient else response["id"]) == "seven", "the id")
    only = client.infer("simple", inputs, outputs=[module.InferRequestedOutput("OUTPUT1")])
    check(only.as_numpy("OUTPUT0") is None, "OUTPUT0 was not asked for")
    same(only.as_numpy("OUTPUT1"), a - 1)


@both
def every_datatype(module, client):
    for datatype, array in VALUES.items():
        same(client.infer("echo", [tensor(module, "INPUT__0", array, datatype)]).as_numpy("OUTPUT__0"),
             np.array([s.encode() for s in array], dtype=object) if datatype == "BYTES" else array)
    many = np.arange(300_000, dtype=np.float64).reshape(3, 100_000)
    other = np.arange(70_000, dtype=np.int64)
    result = client.infer("echo", [tensor(module, "INPUT__0", other, "INT64"), tensor(module, "INPUT__1", many, "FP64")])
    same(result.as_numpy("OUTPUT__0"), other)
    same(result.as_numpy("OUTPUT__1"), many)
    empty = np.zeros((0, 4), np.float32)
    same(client.infer("echo", [tensor(module, "INPUT__0", empty, "FP32")]).as_numpy("OUTPUT__0"), empty)


@test
def json_tensors(t):
    with httpclient.InferenceServerClient(t.http) as client:
        for datatype, array in VALUES.items():
            if datatype in ("FP16", "BF16"):
                continue  # the client wants them binary
            finite = array if array.dtype.kind != "f" else array[np.isfinite(array)]
            output = httpclient.InferRequestedOutput("OUTPUT__0", binary_data=False)
            result = client.infer("echo", [tensor(httpclient, "INPUT__0", finite, datatype, binary_data=False)], outputs=[output])
            got = result.as_numpy("OUTPUT__0")
            check(got.tolist() == finite.tolist(), "%s: %s, wanted %s" % (datatype, got, finite))
        for algorithm in ("gzip", "deflate"):
            a, inputs = pair(httpclient)
            result = client.infer("simple", inputs, request_compression_algorithm=algorithm, response_compression_algorithm=algorithm)
            same(result.as_numpy("OUTPUT0"), a + 1)
        special = VALUES["FP32"]
        output = httpclient.InferRequestedOutput("OUTPUT__0", binary_data=False)
        result = client.infer("echo", [tensor(httpclient, "INPUT__0", special, "FP32")], outputs=[output])
        same(result.as_numpy("OUTPUT__0"), special)


@both
def strings(module, client):
    a = np.arange(16).reshape(1, 16)
    text = np.array([str(v) for v in a.flatten()], dtype=object).reshape(1, 16)
    ones = np.array(["1"] * 16, dtype=object).reshape(1, 16)
    result = client.infer("simple_string", [tensor(module, "INPUT0", text, "BYTES"), tensor(module, "INPUT1", ones, "BYTES")])
    check(decoded(result.as_numpy("OUTPUT0")) == [str(v + 1) for v in range(16)], "OUTPUT0")
    check(decoded(result.as_numpy("OUTPUT1")) == [str(v - 1) for v in range(16)], "OUTPUT1")


@test
def async_infer_over_grpc(t):
    with grpcclient.InferenceServerClient(t.grpc) as client:
        a, inputs = pair(grpcclient)
        results = queue.Queue()
        for _ in range(20):
            client.async_infer("simple", inputs, callback=lambda result, error: results.put(error or result))
        for _ in range(20):
            same(results.get(timeout=20).as_numpy("OUTPUT0"), a + 1)


@test
def async_infer_over_http(t):
    with httpclient.InferenceServerClient(t.http, concurrency=4) as client:
        a, inputs = pair(httpclient)
        for request in [client.async_infer("simple", inputs) for _ in range(20)]:
            same(request.get_result().as_numpy("OUTPUT1"), a - 1)


class Stream:
    def __init__(self, t, **options):
        self.client, self.answers = grpcclient.InferenceServerClient(t.grpc), queue.Queue()
        self.client.start_stream(callback=lambda result, error: self.answers.put((result, error)), **options)

    def send(self, model, inputs, **options):
        self.client.async_stream_infer(model, inputs, **options)

    def get(self):
        result, error = self.answers.get(timeout=20)
        if error:
            raise error
        return result, result.get_response()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.stop_stream()
        self.client.close()


@test
def a_stream_of_one_answer_each(t):
    with Stream(t) as stream:
        a, inputs = pair(grpcclient)
        for i in range(50):
            stream.send("simple", inputs, request_id=str(i))
        for i in range(50):
            result, response = stream.get()
            check(response.id == str(i) and response.parameters["triton_final_response"].bool_param, response.id)
            same(result.as_numpy("OUTPUT0"), a + 1)


@test
def a_decoupled_stream(t):
    with Stream(t) as stream:
        values = np.array([4, 2, 0, 1], np.int32)
        stream.send("repeat_int32", [tensor(grpcclient, "IN", values, "INT32")], request_id="r", enable_empty_final_response=True)
        got = []
        while True:
            result, response = stream.get()
            check(response.id == "r", response.id)
            if response.parameters["triton_final_response"].bool_param:
                break
            got.append(int(result.as_numpy("OUT")[0]))
        check(got == [4, 2, 0, 1] and len(response.outputs) == 0, got)
        stream.send("words", [tensor(grpcclient, "text_input", np.array(["x y"], dtype=object), "BYTES")])
        words = [decoded(stream.get()[0].as_numpy("text_output"))[0] for _ in range(2)]
        check(words == ["x ", "y "], words)


@test
def an_error_leaves_the_stream_alive(t):
    with Stream(t) as stream:
        a, inputs = pair(grpcclient)
        stream.send("nothing", inputs)
        refused(stream.get, 'There is no model "nothing"')
        stream.send("simple", inputs[:1])
        refused(stream.get, 'input "INPUT1" is missing')
        stream.send("simple", inputs)
        same(stream.get()[0].as_numpy("OUTPUT0"), a + 1)


def number(value):
    return [tensor(grpcclient, "text_input", np.array([str(value)], dtype=object), "BYTES")]


def total(result):
    return int(decoded(result.as_numpy("text_output"))[0])


@test
def sequences_on_a_stream(t):
    with Stream(t) as stream:
        for i, value in enumerate([11, 7, 5]):
            for sequence in (1001, "named"):
                stream.send("simple_sequence", number(value), request_id="%s_%d" % (sequence, i), sequence_id=sequence, sequence_start=i == 0, sequence_end=i == 2)
        got = {}
        for _ in range(6):
            result, response = stream.get()
            got[response.id] = total(result)
        check(got == {"%s_%d" % (s, i): v for s in (1001, "named") for i, v in enumerate([11, 18, 23])}, got)


@both
def sequences(module, client):
    def ask(value, **flags):
        given = module.InferInput("text_input", [1], "BYTES")
        given.set_data_from_numpy(np.array([str(value)], dtype=object))
        return total(client.infer("simple_sequence", [given], **flags))
    sid = 2**63 - 1 if module is grpcclient else 2**64 - 1
    refused(lambda: ask(1, sequence_id=sid), "must specify the START flag")
    check(ask(1, sequence_id=sid, sequence_start=True) == 1 and ask(2, sequence_id=sid) == 3, "the sum")
    check(ask(3, sequence_id=sid, sequence_end=True) == 6, "the last sum")
    refused(lambda: ask(1, sequence_id=sid), "must specify the START flag")
    refused(lambda: ask(1), "non-zero or non-empty correlation ID")


@both
def errors(module, client):
    _, inputs = pair(module)
    refused(lambda: client.infer("nothing", inputs), 'There is no model "nothing"')
    refused(lambda: client.infer("simple", inputs, model_version="9"), 'no version "9"')
    refused(lambda: client.infer("simple", inputs[:1]), 'input "INPUT1" is missing')
    wrong = tensor(module, "INPUT1", np.ones((1, 16), np.float32), "FP32")
    refused(lambda: client.infer("simple", [inputs[0], wrong]), 'got datatype "FP32", wanted "INT32"')
    refused(lambda: client.infer("simple", inputs, outputs=[module.InferRequestedOutput("OUTPUT9")]), 'unexpected inference output "OUTPUT9"')
    refused(lambda: client.infer("simple", inputs, parameters={"nothing": 1}) and client.get_model_config("nothing"), "nothing")
    refused(lambda: client.infer("repeat_int32", [tensor(module, "IN", np.ones(1, np.int32), "INT32")]), "decoupled")


@both
def repository(module, client):
    def index():
        rows = client.get_model_repository_index()
        rows = [{"name": m.name, "state": m.state} for m in rows.models] if module is grpcclient else rows
        return {row["name"]: row["state"] for row in rows}
    _, inputs = pair(module)
    check(index()["simple"] == "READY", "before")
    client.unload_model("simple")
    check(index()["simple"] == "UNAVAILABLE" and not client.is_model_ready("simple"), "unloaded")
    refused(lambda: client.infer("simple", inputs), "is unloaded")
    client.load_model("simple")
    check(index()["simple"] == "READY" and client.is_model_ready("simple"), "loaded")
    client.infer("simple", inputs)
    refused(lambda: client.load_model("nothing"), 'There is no model "nothing"')


@both
def statistics(module, client):
    def count():
        stats = client.get_inference_statistics("simple")
        if module is grpcclient:
            return stats.model_stats[0].inference_stats.success.count
        return stats["model_stats"][0]["inference_stats"]["success"]["count"]
    _, inputs = pair(module)
    before = count()
    for _ in range(3):
        client.infer("simple", inputs)
    check(count() == before + 3, "%s after %s" % (count(), before))
    client.get_inference_statistics()


@test
def asyncio_stream(t):
    async def run():
        async with grpcaio.InferenceServerClient(t.grpc) as client:
            values = tensor(grpcclient, "IN", np.array([3, 1], np.int32), "INT32")

            async def requests():
                yield {"model_name": "repeat_int32", "inputs": [values], "request_id": "1"}

            return [int(result.as_numpy("OUT")[0]) async for result, error in client.stream_infer(requests()) if error is None]

    check(asyncio.run(run()) == [3, 1], "the values")


def main():
    with Server(FUNCTIONS, args=["--http-port", "0"]) as server:
        addresses = SimpleNamespace(grpc=server.address, http=server.http.removeprefix("http://"))  # as the clients want them
        return play([(name, functools.partial(fn, addresses)) for name, fn in TESTS], said=lambda: server.log(10))


if __name__ == "__main__":
    run(main)
