"""Many clients at once that send without taking an answer, or ask for more than they take: they wait, and the others are served."""
import os
import time

from caselib import H2, MOD, case, check, frame, ld, mp, packf
from cases_lifecycle import Own, own
from cases_stall import EXACT
from helpers import messages_of, request_bytes, until
from servers import CollectingServer

CLIENTS = 100
WINDOW = 65_535
MAX_TAKEN = 4 * WINDOW  # bytes of a client whose messages the server does not get to answer
MEMORY = 1.5  # MB a client while they are connected
ROUNDS = 4
LEFT = 60  # MB that may stay of all of them, besides what the allocator keeps for the next ones


class Crowd:
    """Clients of a server of its own, connected by the rounds of a case."""

    def __init__(self, t, server):
        self.target, self.server, self.clients = Own(t, server), server, []
        self.target.alive()
        self.memory, self.sockets = server.collect()[0], self.count()

    def count(self):
        """Sockets of the server on its port: those to the processes of functions are no clients'."""
        with open("/proc/net/tcp") as f:
            rows = [row.split() for row in f.readlines()[1:]]
        inodes = {"socket:[%s]" % cols[9] for cols in rows if int(cols[1].rsplit(":", 1)[1], 16) == self.server.port}
        return len(inodes.intersection(map(link, os.scandir("/proc/%d/fd" % self.server.serving_pid()))))

    def connect(self, path, extra, window, count=CLIENTS):
        for _ in range(count):
            c = H2(self.target, settings=[(4, window)])
            c.auto_window = False
            c.headers(1, path, extra)
            self.clients.append(c)

    def flood(self, message):
        """All send what they are let send, until for half a second nobody is; the most that was taken of one."""
        framed = frame(0, message) * (16_000 // (len(message) + 5) + 1)
        rest, sent, last = {c: b"" for c in self.clients}, dict.fromkeys(self.clients, 0), time.time()
        while time.time() - last < 0.5 and max(sent.values()) < 2 * MAX_TAKEN:
            for c in self.clients:
                c.pump(0.001, lambda: min(c.win, c.streamwin[1]) > 0)
                while min(c.win, c.streamwin[1]) > 0:
                    rest[c] = rest[c] or framed
                    n = min(len(rest[c]), 16_384, c.win, c.streamwin[1])
                    c.data(1, rest[c][:n])
                    rest[c], sent[c], last = rest[c][n:], sent[c] + n, time.time()
                    c.win -= n
                    c.streamwin[1] -= n
        check(not any(c.closed or c.goaway for c in self.clients), "connections were closed: that is not the point here")
        return max(sent.values())

    def others_are_served(self, memory=MEMORY):
        took = self.target.alive()
        check(took < 3, "a plain call took %.1f s" % took)
        grown = self.server.collect()[0] - self.memory
        check(grown < memory * len(self.clients), "RSS grew by %d MB for %d clients" % (grown, len(self.clients)))

    def leave(self):
        for c in self.clients:
            c.close()
        self.clients = []
        self.target.reset()
        until(lambda: self.count() <= self.sockets, 10, "the descriptors are closed")
        return self.server.collect()[0]


def link(entry):
    try:
        return os.readlink(entry.path)
    except OSError:
        return ""


def rounds(t, play, left_mb=LEFT):
    """Plays until a round leaves no more than the one before it: the allocator may grow for two, a leak does with each."""
    with own(kind=CollectingServer, env=EXACT) as server:
        crowd, left = Crowd(t, server), []
        try:
            while len(left) < 2 or left[-1] - left[-2] >= left_mb:
                check(len(left) < ROUNDS, "RSS after each round, in MB: %s" % left)
                play(crowd)
                left.append(round(crowd.leave()))
            crowd.target.alive()
        finally:
            crowd.target.reset()


def flooded(t, rpc, model, message, **kw):
    def play(crowd):
        crowd.connect(MOD + rpc, [("model-id", model)], 0)  # no window: none of the answers can leave
        taken = crowd.flood(message)
        check(taken < MAX_TAKEN, "the server takes %d bytes of messages that it does not get to answer" % taken)
        crowd.others_are_served(**kw)
    rounds(t, play)


@case("flood.chat", "chat")
def _(t):
    """100 clients send turns without end and take no answer."""
    flooded(t, "ChatStream", "parrot", mp.UserMessage(content="x" * 1000).SerializeToString())


@case("flood.heartbeats", "chat")
def _(t):
    """The same with heartbeats: messages of no bytes, of which a window holds 13,000; grpc-js takes 0.3 KB for each."""
    flooded(t, "ChatStream", "parrot", mp.UserMessage().SerializeToString(), memory=5)


@case("flood.batch", "batch")
def _(t):
    """100 clients send vectors without end to a function that is busy with the first of them."""
    flooded(t, "BatchPredict", "gate", ld(1, "v") + packf(2, [1.0] * 250))


@case("flood.stream", "stream")
def _(t):
    """80 endless streams to clients that take no more than the first window; those that read on miss nothing."""
    read = 200_000  # bytes that they take besides

    def play(crowd):
        key = "crowd-%d" % time.time_ns()
        made = lambda: crowd.target.v1("watched", params={"key": key}, timeout=60).output_tensor[1]
        crowd.connect(MOD + "StreamPredict", [], WINDOW, count=80)  # the fixture's instance takes 100, the reports among them
        for c in crowd.clients:
            c.data(1, frame(0, request_bytes("watched", params={"key": key})), True)
        until(lambda: is_still(made), 60, "the generators stand still")
        crowd.others_are_served(memory=5)  # of which the streams' messages are a tenth: the rest is the allocator's, and level
        for c in crowd.clients[:5]:
            c.window(0, read)
            c.window(1, read)
            c.pump(20, lambda: len(c._st(1)["data"]) >= WINDOW + read)
            indexes = [mp.TokenChunk.FromString(m).index for m in messages_of(c._st(1)["data"])[:-1]]
            check(len(indexes) > 5000 and indexes == list(range(len(indexes))), "%d tokens, some lost or in another order" % len(indexes))
    rounds(t, play, left_mb=150)


def is_still(count):
    """Whether something was counted, and nothing more for half a second."""
    before = count()
    time.sleep(0.5)
    return count() == before > 0
