"""Bidirectional streaming: a conversation, turn by turn, on one stream.

    python3 chat.py [--address HOST:PORT] [MESSAGE ...]
"""
import queue

from client import arguments, connect, model_inference_pb2, model_inference_pb2_grpc


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--max-tokens", type=int, default=24, help="length of an answer")
    parser.add_argument("--seed", type=int, default=7, help="the same seed gives the same answers")
    parser.add_argument("messages", nargs="*", default=["Emma was", "Mr. Darcy said"])
    args = parser.parse_args()

    outbox = queue.Queue()  # what the library sends: it asks for the next message until it gets None
    metadata = [
        ("model-id", "austen"),
        ("param-max_tokens", str(args.max_tokens)),
        ("param-seed", str(args.seed)),
    ]

    with connect(args.address) as channel:
        stub = model_inference_pb2_grpc.ModelInferenceStub(channel)
        replies = stub.ChatStream(iter(outbox.get, None), timeout=60, metadata=metadata)

        # A message without content is a heartbeat: it is answered at once and is no turn of the conversation.
        outbox.put(model_inference_pb2.UserMessage())
        pong = next(replies)
        assert pong.content == "" and not pong.finish_reason, pong
        session = pong.session_id  # we named no session, so the server made one
        assert session, "no session id came"
        print("session %s" % session)

        for message in args.messages:
            print("> %s" % message)
            outbox.put(model_inference_pb2.UserMessage(session_id=session, content=message))
            answer = ""
            for piece in replies:
                assert piece.session_id == session, piece
                print(piece.content, end="", flush=True)
                answer += piece.content
                if piece.finish_reason:
                    break
            print()
            assert answer.strip(), "an empty answer"

        outbox.put(None)  # half-close: the server ends the stream
        assert list(replies) == []
        assert replies.code().name == "OK", replies.code()


if __name__ == "__main__":
    main()
