"""Latency of both services beside bare grpc-js on the same Deno, interleaved in one run.

    test/bench/latency.sh [ROUNDS]

Only the ratios mean something: the machine's noise hits both alike.
"""
import os
import re
import subprocess
import sys
import time

import grpc
import numpy as np

import inference_pb2 as ip
import inference_pb2_grpc as ipg
import model_inference_pb2 as mp
import model_inference_pb2_grpc as mpg

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FIXTURES = os.path.join(ROOT, "test", "testdata", "functions")


class Target:
    def __init__(self, name, argv):
        self.name = name
        self.proc = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.proc.stdout:
            address = re.search(r"grpc://(\S+)", line)
            if address:
                break
        options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
        self.channel = grpc.insecure_channel(address.group(1), options=options)
        self.tensors, self.modes = ipg.InferenceServiceStub(self.channel), mpg.ModelInferenceStub(self.channel)
        self.times = {}

    def note(self, what, ms):
        self.times.setdefault(what, []).append(ms)

    def round(self):
        image = np.zeros((1, 224, 224, 3), np.float32)
        tensor = ip.TensorData(data=image.tobytes(), shape=image.shape, dtype="float32")
        request = ip.InferenceRequest(model_name="echo", inputs=[tensor])
        for _ in range(5):
            start = time.perf_counter()
            self.tensors.Predict(request)
            self.note("602 KB tensor", 1000 * (time.perf_counter() - start))
        small = mp.PredictRequest(model_id="echo", input_tensor=[1, 2, 3])
        for _ in range(20):
            start = time.perf_counter()
            self.modes.Predict(small)
            self.note("small unary", 1000 * (time.perf_counter() - start))
        for _ in range(3):
            start = time.perf_counter()
            for chunk in self.modes.StreamPredict(mp.PredictRequest(model_id="counter", max_tokens=100)):
                if chunk.index == 0:
                    self.note("first token", 1000 * (time.perf_counter() - start))
            self.note("100 tokens", 1000 * (time.perf_counter() - start))

    def stop(self):
        self.channel.close()
        self.proc.kill()
        self.proc.wait()


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    deno = os.environ.get("E2E_DENO", "deno").split()
    targets = [
        Target("tensorlet", deno + ["run", "-A", "mod.ts", FIXTURES, "--port", "0"]),
        Target("bare grpc-js", deno + ["run", "-A", os.path.join(HERE, "bare_server.ts")]),
    ]
    try:
        for i in range(rounds + 10):
            if i == 10:  # the first rounds warm both up
                for target in targets:
                    target.times = {}
            for target in targets if i % 2 else reversed(targets):
                target.round()
    finally:
        for target in targets:
            target.stop()
    print("%-14s %-13s %9s %9s %9s" % ("", "", "p50 ms", "p99 ms", "ratio p50"))
    for what in targets[0].times:
        base = np.percentile(targets[1].times[what], 50)
        for target in targets:
            p50, p99 = np.percentile(target.times[what], [50, 99])
            print("%-14s %-13s %9.3f %9.3f %9.2f" % (what, target.name, p50, p99, p50 / base))
    for target in targets:
        print("%s: %.0f tokens/s, one stream of 100" % (target.name, 100_000 / np.percentile(target.times["100 tokens"], 50)))


if __name__ == "__main__":
    main()
