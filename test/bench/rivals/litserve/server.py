"""The network of functions/digits under LitServe: server.py --model FILE --port PORT [--batching]"""
import argparse

import litserve as ls
import numpy as np
import onnxruntime


class Digits(ls.LitAPI):
    def __init__(self, model, **options):
        super().__init__(api_path="/predict", **options)
        self.path = model

    def setup(self, device):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(self.path, options)

    def decode_request(self, request):
        return np.asarray(request["image"], dtype=np.float32)

    def batch(self, inputs):
        return np.stack(inputs)

    def predict(self, images):
        images = images.reshape(-1, 1, 28, 28)
        return self.session.run(None, {"image": images})[0]

    def unbatch(self, output):
        return list(output)

    def encode_response(self, output):
        return {"probabilities": output.ravel().tolist()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--batching", action="store_true")
    args = parser.parse_args()
    batching = {"max_batch_size": 64, "batch_timeout": 0.005} if args.batching else {}
    server = ls.LitServer(Digits(args.model, **batching), accelerator="cpu", workers_per_device=2)
    server.run(host="127.0.0.1", port=args.port, generate_client_file=False, log_level="warning")
