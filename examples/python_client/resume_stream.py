"""A token stream that survives its connections: it goes on where it broke off, with no token lost or repeated.

    python3 resume_stream.py [--address HOST:PORT] [--prompt TEXT] [--max-tokens N] [--break-after BYTES]
"""
import random
import time
import uuid

import grpc

from client import arguments, connect, model_inference_pb2, model_inference_pb2_grpc
from flaky_network import FlakyNetwork

FIRST_DELAY, LONGEST_DELAY = 0.1, 2.0  # seconds; the server waits 10 s for a reader that was cut off


def resumable_stream(stub, request, timeout=60):
    """Yields the chunks of one StreamPredict, over as many connections as it takes.

    The metadata `request-id` has the server keep the stream's newest tokens, and run it on for 10 s when its reader is cut
    off. The same id with params["resume_from"] = "N" then gets the tokens from index N on; the function runs once.
    """
    metadata = [("request-id", str(uuid.uuid4()))]  # one nobody else has: whoever knows it can read the stream
    deadline = time.monotonic() + timeout
    delay, received, is_final = FIRST_DELAY, 0, False
    while True:
        try:
            for chunk in stub.StreamPredict(request, metadata=metadata, timeout=deadline - time.monotonic()):
                assert chunk.index == received, "token %d came where %d was due" % (chunk.index, received)
                received, is_final, delay = received + 1, chunk.is_final, FIRST_DELAY
                yield chunk
            return
        except grpc.RpcError as error:
            if is_final:
                return  # only the end's status was lost
            if error.code() == grpc.StatusCode.NOT_FOUND and received == 0 and "resume_from" in request.params:
                del request.params["resume_from"]  # the first attempt never reached the server
            elif error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ALREADY_EXISTS):
                request.params["resume_from"] = str(received)
            else:
                raise  # INVALID_ARGUMENT, OUT_OF_RANGE (too late), ...: trying again would not help
            if time.monotonic() + delay >= deadline:
                raise
        time.sleep(delay * random.uniform(0.5, 1))  # not all clients of a server that restarts at the same moment
        delay = min(delay * 2, LONGEST_DELAY)


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--prompt", default="Emma was")
    parser.add_argument("--max-tokens", type=int, default=60)
    parser.add_argument("--seed", type=int, default=7, help="the same seed gives the same text")
    parser.add_argument("--break-after", type=int, default=1000, help="bytes that a connection lives for")
    args = parser.parse_args()

    def make_request():
        return model_inference_pb2.PredictRequest(
            model_id="austen",
            params={"prompt": args.prompt, "seed": str(args.seed)},
            max_tokens=args.max_tokens,
        )

    with connect(args.address) as channel:
        stub = model_inference_pb2_grpc.ModelInferenceStub(channel)
        whole = [chunk.token for chunk in stub.StreamPredict(make_request(), timeout=60)]

    network = FlakyNetwork(args.address, break_after=args.break_after)
    tokens, seen = [], 1
    with connect(network.address) as channel:
        stub = model_inference_pb2_grpc.ModelInferenceStub(channel)
        for chunk in resumable_stream(stub, make_request()):
            if network.connections > seen:
                print("|", end="")
                seen = network.connections
            print(chunk.token, end="", flush=True)
            tokens.append(chunk.token)
    print()
    assert chunk.is_final, "no end was marked"
    assert tokens == whole, "it is not the text of a stream that nothing interrupts"
    print("%d tokens over %d connections" % (len(tokens), network.connections))
    assert network.connections > 1, "the network did not break"


if __name__ == "__main__":
    main()
