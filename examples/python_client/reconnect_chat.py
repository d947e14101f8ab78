"""A conversation that survives its connections: heartbeats find a dead one, and a new one goes on with the session.

    python3 reconnect_chat.py [--address HOST:PORT] [MESSAGE ...]
"""
import queue
import random
import threading
import time
import uuid

import grpc

from client import arguments, model_inference_pb2, model_inference_pb2_grpc, open_channel
from flaky_network import FlakyNetwork

FIRST_DELAY, LONGEST_DELAY = 0.1, 5.0  # seconds; a session waits a minute for its client, unless its function says otherwise


class Chat:
    """A session of ChatStream that outlives its streams: what the server keeps of it goes by the session's id."""

    def __init__(self, address, metadata, pong_timeout=2.0):
        self.session = str(uuid.uuid4())
        self.reconnects = 0
        self._address, self._metadata, self._pong_timeout = address, metadata, pong_timeout
        self._open()

    def ask(self, content):
        """Yields the pieces of an answer; read it to its end before the next heartbeat.

        A turn that breaks off is not sent again: the server may have answered it, and the session remembers what was said.
        """
        self.heartbeat()
        self._send(content)
        while True:
            piece = self._receive(timeout=60)
            if piece.content:
                yield piece.content
            if piece.finish_reason:
                return

    def heartbeat(self, attempts=8):
        """Makes sure that the connection works, or makes another. Call it each 20 s or so while nobody speaks."""
        delay = FIRST_DELAY
        for attempt in range(attempts):
            try:
                self._send("")  # no turn: it is answered at once, with an empty piece that finishes nothing
                pong = self._receive(timeout=self._pong_timeout)
                assert pong.content == "" and not pong.finish_reason and pong.session_id == self.session, pong
                return
            except (grpc.RpcError, ConnectionError, queue.Empty) as error:
                if isinstance(error, grpc.RpcError) and error.code() != grpc.StatusCode.UNAVAILABLE:
                    raise
                # No answer, or the stream broke. A new channel: the old one may not know yet that its connection is dead.
                self._replies.cancel()
                self.close()
                time.sleep(delay * random.uniform(0.5, 1))
                delay = min(delay * 2, LONGEST_DELAY)
                self._open()
                self.reconnects += 1
        raise ConnectionError("no answer from %s after %d attempts" % (self._address, attempts))

    def close(self):
        """Says goodbye, and waits for the server's: grpcio can hang when Python ends in the middle of a cancellation."""
        self._outbox.put(None)
        self._reader.join(self._pong_timeout)
        self._channel.close()

    def _open(self):
        self._channel = open_channel(self._address)
        self._outbox, self._inbox = queue.Queue(), queue.Queue()
        stub = model_inference_pb2_grpc.ModelInferenceStub(self._channel)
        self._replies = stub.ChatStream(iter(self._outbox.get, None), metadata=self._metadata)
        self._reader = threading.Thread(target=_read, args=(self._replies, self._inbox), daemon=True)
        self._reader.start()

    def _send(self, content):
        self._outbox.put(model_inference_pb2.UserMessage(session_id=self.session, content=content))

    def _receive(self, timeout):
        received = self._inbox.get(timeout=timeout)
        if isinstance(received, Exception):
            raise received
        return received


def _read(replies, inbox):
    """In a thread of its own, so that waiting for an answer can have an end."""
    try:
        for piece in replies:
            inbox.put(piece)
        inbox.put(ConnectionError("the server ended the conversation"))
    except grpc.RpcError as error:
        inbox.put(error)


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--max-tokens", type=int, default=16, help="length of an answer")
    parser.add_argument("messages", nargs="*", default=["Emma was", "Mr. Darcy said", "Where is Jane?"])
    args = parser.parse_args()
    metadata = [("model-id", "austen"), ("param-max_tokens", str(args.max_tokens)), ("param-seed", "7")]

    def talk(chat, between=lambda i: None):
        answers = []
        for i, message in enumerate(args.messages):
            between(i)
            answers.append("".join(chat.ask(message)))
        chat.close()
        return answers

    expected = talk(Chat(args.address, metadata))

    network = FlakyNetwork(args.address)
    faults = [network.cut, network.freeze]  # one that is noticed at once, and one that only a heartbeat finds

    def break_network(i):
        if i > 0:
            faults[i % len(faults)]()

    chat = Chat(network.address, metadata)
    answers = talk(chat, break_network)
    for message, answer in zip(args.messages, answers):
        print("> %s\n%s" % (message, answer))
    print("%d reconnects, session %s" % (chat.reconnects, chat.session))
    # An answer depends on all that was said before, so the same answers mean that the session was still there.
    assert answers == expected, "it is not the conversation that nothing interrupts: %s" % expected
    assert chat.reconnects >= len(args.messages) - 1, "the network did not break"
    if len(args.messages) > 1:
        stranger = Chat(args.address, metadata)
        alone = "".join(stranger.ask(args.messages[-1]))
        stranger.close()
        assert alone != answers[-1], "the answer does not depend on the session"


if __name__ == "__main__":
    main()
