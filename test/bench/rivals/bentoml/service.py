"""The network of functions/digits under BentoML: bentoml serve service:Digits, or service:BatchedDigits.

MODEL is the ONNX file.
"""
import os

import bentoml
import numpy as np
import onnxruntime


def load():
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(os.environ["MODEL"], options)


@bentoml.service(workers=2)
class Digits:
    def __init__(self):
        self.session = load()

    @bentoml.api
    def predict(self, images: np.ndarray) -> np.ndarray:
        return self.session.run(None, {"image": images.astype(np.float32)})[0]


@bentoml.service(workers=2)
class BatchedDigits:
    def __init__(self):
        self.session = load()

    @bentoml.api(batchable=True, max_batch_size=64, max_latency_ms=1000)
    def predict(self, images: np.ndarray) -> np.ndarray:
        return self.session.run(None, {"image": images.astype(np.float32)})[0]
