"""Server streaming: a language model's tokens, printed as they come.

    python3 stream_tokens.py [--address HOST:PORT] [--prompt TEXT] [--max-tokens N] [--seed N]
"""
from client import arguments, connect, model_inference_pb2, model_inference_pb2_grpc


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--prompt", default="Emma was")
    parser.add_argument("--max-tokens", type=int, default=40)
    parser.add_argument("--seed", type=int, default=7, help="the same seed gives the same text")
    args = parser.parse_args()
    request = model_inference_pb2.PredictRequest(
        model_id="austen",
        params={"prompt": args.prompt, "seed": str(args.seed)},  # all params are strings on the wire
        max_tokens=args.max_tokens,
    )

    with connect(args.address) as channel:
        call = model_inference_pb2_grpc.ModelInferenceStub(channel).StreamPredict(request, timeout=60)
        chunks = []
        print(args.prompt, end="", flush=True)
        for chunk in call:
            print(chunk.token, end="", flush=True)
            chunks.append(chunk)
        print()
        # The server's figures come after the last token, as trailing metadata.
        trailers = {item.key: item.value for item in call.trailing_metadata()}

    for name in ("tokens", "time-to-first-token-ms", "latency-ms"):
        print("%s: %s" % (name, trailers[name]))
    assert [chunk.index for chunk in chunks] == list(range(len(chunks))), "a token is missing"
    assert [chunk.is_final for chunk in chunks] == [False] * (len(chunks) - 1) + [True], "no end was marked"
    assert 1 <= int(trailers["tokens"]) <= args.max_tokens, trailers
    assert "".join(chunk.token for chunk in chunks), "no text came"


if __name__ == "__main__":
    main()
