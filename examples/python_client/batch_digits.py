"""Client streaming: a batch of images, one answer for all of them.

    python3 batch_digits.py [--address HOST:PORT] [--copies N]
"""
import numpy as np

from client import arguments, connect, model_inference_pb2, model_inference_pb2_grpc


def draw(digit):
    """A 0 (a ring) or a 1 (a stroke), 28 x 28 pixels in 0..1, as a flat vector."""
    y, x = np.mgrid[0:28, 0:28].astype(np.float32) - 13.5
    distance = np.abs(np.hypot(x / 0.75, y) - 8) if digit == 0 else np.where(np.abs(y) < 9, np.abs(x), 9)
    return np.clip(2.5 - distance, 0, 1).astype(np.float32).ravel()


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--copies", type=int, default=16, help="how many of each digit to send")
    args = parser.parse_args()
    digits = [0, 1] * args.copies
    # A generator: the library reads from it as fast as the server takes the vectors.
    vectors = (
        model_inference_pb2.FeatureVector(id="image-%d" % position, features=draw(digit))
        for position, digit in enumerate(digits)
    )

    with connect(args.address) as channel:
        stub = model_inference_pb2_grpc.ModelInferenceStub(channel)
        # The messages have no field for the function's name: it goes into the call's metadata.
        result = stub.BatchPredict(vectors, timeout=60, metadata=[("model-id", "digits")])

    found = [int(np.argmax(answer.output_tensor)) for answer in result.results]
    print("%d images, %d read rightly" % (result.total_processed, sum(f == d for f, d in zip(found, digits))))
    assert result.total_processed == len(digits) == len(found), result.total_processed
    assert all(len(answer.output_tensor) == 10 for answer in result.results)
    assert found == digits, found


if __name__ == "__main__":
    main()
