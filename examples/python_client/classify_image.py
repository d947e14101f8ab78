"""Unary: one image as a tensor, ten probabilities back.

    python3 classify_image.py [--address HOST:PORT] [--repeat N]
"""
import time

import numpy as np

from client import arguments, connect, inference_pb2, inference_pb2_grpc, to_array, to_tensor


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5, help="how often to send it: the first call also connects")
    args = parser.parse_args()

    # A picture of 224 x 224 pixels, three channels in 0..1: red grows to the right, green downwards.
    image = np.zeros((1, 224, 224, 3), dtype=np.float32)
    image[..., 0] = np.linspace(0, 1, 224, dtype=np.float32)
    image[..., 1] = np.linspace(0, 1, 224, dtype=np.float32)[:, np.newaxis]
    request = inference_pb2.InferenceRequest(model_name="image_classifier_v1", inputs=[to_tensor(image)])

    with connect(args.address) as channel:
        stub = inference_pb2_grpc.InferenceServiceStub(channel)
        for _ in range(args.repeat):
            start = time.perf_counter()
            response = stub.Predict(request, timeout=30)
            round_trip_ms = (time.perf_counter() - start) * 1000
            print("round trip %.1f ms, in the server %d ms" % (round_trip_ms, response.latency_ms))

    probabilities = to_array(response.outputs[0])
    print("class %d with probability %.3f" % (probabilities.argmax(), probabilities.max()))
    assert response.status == "OK", response.status
    assert probabilities.shape == (1, 10) and probabilities.dtype == np.float32, probabilities
    assert abs(float(probabilities.sum()) - 1) < 1e-3 and (probabilities >= 0).all(), probabilities


if __name__ == "__main__":
    main()
