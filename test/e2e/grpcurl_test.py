"""grpcurl: what a shell gets that knows nothing but a server's address.

One server with the functions of test/testdata. The last line is "N passed, N failed".
"""
import base64
import functools
import json
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import threading
import time

from servers import FIXTURES, ROOT, Server
from suite import equal, play, run

PROTOS = os.path.join(ROOT, "protos")
LIMIT_SECS = 60
TENSOR, V1, OIP, HEALTH = ("inference.InferenceService", "inference.v1.ModelInference",
                           "inference.GRPCInferenceService", "grpc.health.v1.Health")
REFLECTION = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")
# The files that the services are in.
FILES = {
    TENSOR: "inference.proto",
    V1: "inference/v1/model_inference.proto",
    OIP: "inference/grpc_predict_v2.proto",
    HEALTH: "grpc/health/v1/health.proto",
    REFLECTION[0]: "grpc/reflection/v1/reflection.proto",
}
TESTS = []


def test(fn):
    TESTS.append(fn)
    return fn


def has(text, *needles):
    for needle in needles:
        assert needle in text, "%r is not in %r" % (needle, text)


class Failure(Exception):
    """What grpcurl said of a call that failed; its exit status is 64 + the code."""

    def __init__(self, status, text):
        super().__init__("status %d: %s" % (status, text))
        self.status, self.text = status, text


def grpcurl(*args, given=None):
    done = subprocess.run(("grpcurl",) + args, input=given, capture_output=True, text=True, timeout=LIMIT_SECS)
    if done.returncode:
        raise Failure(done.returncode, done.stderr)
    return done.stdout


def jsons(text):
    """The values of a text that one after another fills."""
    found, decoder = [], json.JSONDecoder()
    while text.strip():
        value, end = decoder.raw_decode(text.strip())
        found.append(value)
        text = text.strip()[end:]
    return found


class Shell:
    """grpcurl with one server's address."""

    def __init__(self, server):
        self.address, self.lines = server.address, server.lines

    def ask(self, *words, options=()):
        return grpcurl("-plaintext", *options, self.address, *words)

    def stream(self, method, *messages, options=()):
        """The answers to messages of stdin."""
        given = "\n".join(json.dumps(m) for m in messages)
        return jsons(grpcurl("-plaintext", "-d", "@", *options, self.address, method, given=given))

    def call(self, method, message=None, options=()):
        answers = self.stream(method, message or {}, options=options)
        equal(len(answers), 1, method)
        return answers[0]

    def open(self, method, *options):
        return subprocess.Popen(("grpcurl", "-plaintext", *options, self.address, method), stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def refused(self, code, number, needles, method, message, options=()):
        try:
            self.stream(method, message, options=options)
        except Failure as failure:
            equal(failure.status, 64 + number, failure.text)
            has(failure.text, "Code: %s\n" % code, *needles)
            return failure.text
        raise AssertionError("%s of %s was answered" % (method, message))

    def report(self, key):
        """What the fixture "watched" remembers: calls that were started, tokens, aborted, ended."""
        answer = self.call(V1 + "/Predict", {"model_id": "watched", "params": {"key": key}})
        return [int(v) for v in answer["output_tensor"]]


def until(fn, what):
    stop = time.time() + 20
    while not fn():
        assert time.time() < stop, what
        time.sleep(0.05)


def header(name, value):
    return ("-H", "%s: %s" % (name, value))


def floats(*values):
    return base64.b64encode(struct.pack("<%df" % len(values), *values)).decode()


def float_tensor(*values, shape=None):
    return {"dtype": "float32", "shape": shape or [len(values)], "data": floats(*values)}


# ---------------------------------------------------------------- what the server says of itself
@test
def services_are_listed(t):
    equal(t.ask("list").split(), sorted([TENSOR, V1, OIP, HEALTH, *REFLECTION]))


@test
def methods_are_listed(t):
    equal(t.ask("list", TENSOR).split(), [TENSOR + ".Predict"])
    equal(t.ask("list", V1).split(), [V1 + "." + m for m in ("BatchPredict", "ChatStream", "Predict", "StreamPredict")])
    equal(t.ask("list", HEALTH).split(), [HEALTH + "." + m for m in ("Check", "List", "Watch")])
    has(t.ask("list", OIP).split(), *(OIP + "." + m for m in ("ServerLive", "ModelInfer", "ModelStreamInfer", "RepositoryIndex")))
    for service in REFLECTION:
        equal(t.ask("list", service).split(), [service + ".ServerReflectionInfo"])


@test
def a_service_and_all_its_messages_are_described_as_their_files_say(t):
    seen = 0
    for service, file in FILES.items():
        symbols, known = [service], set()
        while symbols:
            symbol = symbols.pop()
            known.add(symbol)
            told = t.ask("describe", symbol)
            written = grpcurl("-import-path", PROTOS, "-proto", file, "describe", symbol)
            equal(told, re.sub(r"(?m)^ *//.*\n", "", written), symbol)  # comments do not travel
            symbols += {name for name in re.findall(r"(?<= )\.([\w.]+)", told) if name not in known and name not in symbols}
        seen += len(known)
    assert seen > 50, seen


@test
def a_method_an_enum_and_the_alpha_reflection_are_described(t):
    has(t.ask("describe", V1 + ".ChatStream"), "is a method", "( stream .inference.v1.UserMessage ) returns ( stream .inference.v1.AssistantMessage )")
    has(t.ask("describe", HEALTH + "CheckResponse.ServingStatus"), "is an enum", "NOT_SERVING = 2;")
    has(t.ask("describe", REFLECTION[1]), "grpc.reflection.v1alpha.ServerReflectionRequest")


@test
def a_template_of_a_message_is_given(t):
    text = t.ask("describe", "inference.v1.PredictRequest", options=["-msg-template"])
    equal(sorted(json.loads(text.split("Message template:")[1])), ["input_tensor", "max_tokens", "model_id", "params"])


@test
def what_is_described_can_be_saved_and_used(t):
    with tempfile.TemporaryDirectory() as folder:
        saved = os.path.join(folder, "saved.binpb")
        t.ask("describe", OIP, options=["-protoset-out", saved])
        equal(t.call(OIP + "/ServerLive", options=["-protoset", saved]), {"live": True})


@test
def what_is_not_there_is_said_to_be_so(t):
    for words, needle in ((("describe", "inference.Nothing"), "Symbol not found"), (("list", "no.Service"), "not found"),
                          ((V1 + "/Nothing",), "does not include a method")):
        try:
            t.ask(*words)
        except Failure as failure:
            has(failure.text, needle)
            equal(failure.status, 1, words)
        else:
            raise AssertionError("%s is there" % (words,))


@test
def the_call_that_the_server_prints_runs(t):
    hint = next(line for line in t.lines if "ModelInference/Predict" in line)
    equal(json.loads(grpcurl(*shlex.split(hint)[1:]))["output_tensor"], [12, 14, 16])


# ---------------------------------------------------------------- grpc.health.v1
@test
def health(t):
    for service in ("", V1, TENSOR, OIP, "affine"):
        equal(t.call(HEALTH + "/Check", {"service": service}), {"status": "SERVING"}, service)
    t.refused("NotFound", 5, ['"nothing"'], HEALTH + "/Check", {"service": "nothing"})
    equal(t.call(HEALTH + "/List")["statuses"][""], {"status": "SERVING"})


@test
def a_watch_goes_on(t):
    proc = t.open(HEALTH + "/Watch", "-format", "text")
    equal(proc.stdout.readline().strip(), "status: SERVING")
    equal(proc.poll(), None)
    proc.kill()
    proc.communicate()


# ---------------------------------------------------------------- inference.InferenceService
@test
def tensors(t):
    answer = t.call(TENSOR + "/Predict", {"model_name": "affine", "inputs": [float_tensor(1, 2.5, 3, 4, shape=[2, 2])]})
    equal(answer["outputs"], [float_tensor(12, 15, 16, 18, shape=[2, 2])])
    equal(answer["status"], "OK")
    answer = t.call(TENSOR + "/Predict", {"model_name": "grid", "inputs": [float_tensor(1, 2, 3, 4, shape=[1, 4])]}, header("param-factor", 3))
    equal(answer["outputs"][0], float_tensor(3, 6, 9, 12, shape=[1, 4]))
    equal(t.call(TENSOR + "/Predict", {"model_name": "versioned@1"})["outputs"], [float_tensor(1)])


@test
def a_request_id_is_echoed(t):
    options = ["-v", *header("request-id", "from-the-shell"), "-d", '{"model_name": "versioned"}']
    has(t.ask(TENSOR + "/Predict", options=options), "request-id: from-the-shell\n", '"AAAAQA=="')


# ---------------------------------------------------------------- inference.v1.ModelInference
@test
def predict(t):
    answer = t.call(V1 + "/Predict", {"model_id": "affine", "input_tensor": [1, 2.5]})
    equal((answer["output_tensor"], answer["model_version"]), ([12, 15], "1"))
    params = {"factor": "3", "negate": "true", "output": "scaled"}
    equal(t.call(V1 + "/Predict", {"model_id": "grid", "input_tensor": [1, 2, 3, 4], "params": params})["output_tensor"], [-3, -6, -9, -12])


@test
def a_stream(t):
    chunks = t.stream(V1 + "/StreamPredict", {"model_id": "counter", "max_tokens": 3})
    equal(chunks, [{"token": "t0"}, {"index": 1, "token": "t1"}, {"index": 2, "token": "t2", "is_final": True}])
    text = t.ask(V1 + "/StreamPredict", options=["-v", "-d", '{"model_id": "counter"}'])
    has(text, "Response trailers received:", "tokens: 5\n", "received 5 responses")


@test
def a_stream_that_breaks_keeps_what_came(t):
    proc = t.open(V1 + "/StreamPredict", "-d", '{"model_id": "burst"}')
    out, _ = proc.communicate(timeout=LIMIT_SECS)
    equal((len(jsons(out)), proc.returncode), (10, 64 + 13))


@test
def a_batch(t):
    vectors = [{"id": str(i), "features": [i, 1]} for i in range(100)]
    answer, = t.stream(V1 + "/BatchPredict", *vectors, options=header("model-id", "sum"))
    equal([r["output_tensor"] for r in answer["results"]], [[i + 1] for i in range(100)])
    equal(answer["total_processed"], 100)


@test
def a_chat(t):
    with t.open(V1 + "/ChatStream", "-d", "@", *header("model-id", "parrot")) as proc:
        timer = threading.Timer(LIMIT_SECS, proc.kill)
        timer.start()
        said = []
        for i, text in enumerate(("hello", "again")):  # the second one when the first is answered
            proc.stdin.write(json.dumps({"session_id": "shell", "content": text}) + "\n")
            proc.stdin.flush()
            answer = ""
            while not answer.endswith("}\n"):
                line = proc.stdout.readline()
                assert line, "it ended"
                answer += line
            said.append(json.loads(answer))
        proc.stdin.close()
        equal(proc.wait(), 0)
        timer.cancel()
    equal(said, [{"session_id": "shell", "content": text, "finish_reason": True} for text in ("1: hello", "2: again")])
    later = t.call(V1 + "/ChatStream", {"session_id": "shell", "content": "back"}, header("model-id", "parrot"))
    equal(later["content"], "3: back", "the session outlives its stream")


# ---------------------------------------------------------------- inference.GRPCInferenceService
@test
def server_and_models(t):
    equal(t.call(OIP + "/ServerLive"), {"live": True})
    equal(t.call(OIP + "/ServerReady"), {"ready": True})
    equal(t.call(OIP + "/ServerMetadata")["name"], "tensorlet")
    equal(t.call(OIP + "/ModelReady", {"name": "grid"}), {"ready": True})
    model = t.call(OIP + "/ModelMetadata", {"name": "grid"})
    equal(model["inputs"][0], {"name": "cells", "datatype": "FP32", "shape": ["-1", "4"]})
    equal(t.call(OIP + "/ModelConfig", {"name": "grid"})["config"]["input"][0]["data_type"], "TYPE_FP32")
    index = t.call(OIP + "/RepositoryIndex")["models"]
    equal([m["version"] for m in index if m["name"] == "versioned"], ["2", "1"])
    equal({m["state"] for m in index}, {"READY"})
    equal(t.call(OIP + "/ModelStatistics", {"name": "versioned", "version": "1"})["model_stats"][0]["version"], "1")


@test
def infer(t):
    typed = {"name": "cells", "datatype": "FP32", "shape": [1, 4], "contents": {"fp32_contents": [1, 2, 3, 4]}}
    request = {"model_name": "grid", "id": "7", "parameters": {"factor": {"int64_param": 3}}, "inputs": [typed]}
    answer = t.call(OIP + "/ModelInfer", request)
    equal((answer["id"], answer["model_version"], [o["name"] for o in answer["outputs"]]), ("7", "1", ["scaled", "dims"]))
    equal(answer["outputs"][0]["contents"], {"fp32_contents": [3, 6, 9, 12]})
    del typed["contents"]
    answer = t.call(OIP + "/ModelInfer", {**request, "outputs": [{"name": "scaled"}], "raw_input_contents": [floats(1, 2, 3, 4)]})
    equal(answer["raw_output_contents"], [floats(3, 6, 9, 12)])


@test
def a_stream_of_requests(t):
    requests = [{"model_name": "versioned", "model_version": version, "id": version} for version in ("1", "9", "2")]
    answers = t.stream(OIP + "/ModelStreamInfer", *requests)
    answers.sort(key=lambda a: a["infer_response"]["id"])  # they come as they are ready
    equal([a["infer_response"]["id"] for a in answers], ["1", "2", "9"])
    equal([a["infer_response"].get("raw_output_contents") for a in answers], [[floats(1)], [floats(2)], None])
    has(answers[2]["error_message"], 'no version "9"')


# ---------------------------------------------------------------- what goes wrong
@test
def errors_have_their_code_and_say_what_was_wanted(t):
    for message, field, method in (({"input_tensor": [1]}, "model_id", V1 + "/Predict"), ({}, "model_id", V1 + "/StreamPredict"),
                                   ({}, "model_name", TENSOR + "/Predict"), ({}, "model_name", OIP + "/ModelInfer")):
        t.refused("NotFound", 5, ['There is no model "affin"; the nearest name is "affine"'], method, {field: "affin", **message})
    t.refused("InvalidArgument", 3, ["got shape [3], wanted [-1,4]"], V1 + "/Predict", {"model_id": "grid", "input_tensor": [1, 2, 3], "params": {"shape": "3"}})
    t.refused("InvalidArgument", 3, ["got shape [4], wanted [-1,4]"], TENSOR + "/Predict", {"model_name": "grid", "inputs": [float_tensor(1, 2, 3, 4)]})
    wrong = {"dtype": "int32", "shape": [1, 4], "data": floats(1, 2, 3, 4)}
    t.refused("InvalidArgument", 3, ['"int32"', '"float32"'], TENSOR + "/Predict", {"model_name": "grid", "inputs": [wrong]})
    t.refused("InvalidArgument", 3, ['shape [2] of "float32" takes 8 bytes, got 4'], TENSOR + "/Predict", {"model_name": "affine", "inputs": [float_tensor(1, shape=[2])]})
    t.refused("Unimplemented", 12, ['"affine"'], V1 + "/ChatStream", {"content": "x"}, header("model-id", "affine"))


@test
def a_functions_own_error_keeps_its_code_and_a_bug_its_secret(t):
    for code, number, kind in (("DataLoss", 15, "data_loss"), ("Aborted", 10, "aborted"), ("ResourceExhausted", 8, "resource_exhausted")):
        t.refused(code, number, ['Cannot go on: "%s" was asked for' % kind], V1 + "/Predict", {"model_id": "refuse", "params": {"kind": kind}})
    for model in ("boom", "refuse"):
        text = t.refused("Internal", 13, [], V1 + "/Predict", {"model_id": model})
        assert "secret" not in text, text


@test
def a_deadline_ends_the_call_and_its_function(t):
    for method, message, key in ((V1 + "/Predict", {"params": {"kind": "wait"}}, "late"), (V1 + "/StreamPredict", {"params": {"delay_ms": "60000"}}, "late-stream")):
        message = {"model_id": "watched", "params": {**message["params"], "key": key}}
        t.refused("DeadlineExceeded", 4, [], method, message, ["-max-time", "2"])
        until(lambda: t.report(key)[3] == 1, "the function goes on after its deadline")


@test
def a_client_that_is_killed_ends_its_function(t):
    proc = t.open(V1 + "/StreamPredict", "-d", '{"model_id": "watched", "params": {"key": "killed", "delay_ms": "50"}}')
    proc.stdout.readline()
    proc.kill()
    proc.communicate()
    until(lambda: t.report("killed")[2:] == [1, 1], "the function goes on after its client")


def main(only):
    with Server(FIXTURES, args=["--http-port", "0"]) as server:
        shell = Shell(server)
        return play([(fn.__name__, functools.partial(fn, shell)) for fn in TESTS], only, lambda: server.log(15))


if __name__ == "__main__":
    run(main, sys.argv[1:])
