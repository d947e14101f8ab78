"""Clients that take nothing of their answers: the bytes are freed all the same, when the call ends."""
import os

import numpy as np

from caselib import H2, INF, case, check, frame, tensor
from cases_lifecycle import Own, own
from helpers import predict_bytes, until
from servers import CollectingServer

CALLS = 10
FLOATS = 2_500_000  # of 10 MB: a round leaves 100 MB or more where nothing is freed
ROOM = 50
# Blocks of this size and more go back to the system when they are freed: RSS after a collection is then exact to 1 MB.
EXACT = {"MALLOC_MMAP_THRESHOLD_": "131072"}


def stays(t, end, extra=()):
    """Rounds of calls on a connection whose window is and stays 0: after `end` and a close, nothing of the answers is left."""
    ask, sids = frame(0, predict_bytes("grow", tensor(np.array([FLOATS], np.float32)))), range(1, 2 * CALLS, 2)
    with own(kind=CollectingServer, env=EXACT) as server:
        files, left = "/proc/%d/fd" % server.serving_pid(), []
        for _ in range(3):
            c = H2(Own(t, server), settings=[(4, 0)])
            try:
                for sid in sids:
                    c.headers(sid, INF + "Predict", extra)
                    c.data(sid, ask, True)
                c.pump(20, lambda: all(c._st(sid)["headers"] for sid in sids))
                check(all(c._st(sid)["headers"] for sid in sids), "no headers: the answers are not under way")
                end(c, sids)
                check(not any(c._st(sid)["data"] for sid in sids), "DATA in spite of the window")
                connected = len(os.listdir(files))
            finally:
                c.close()
            until(lambda: len(os.listdir(files)) < connected, 5, "the server sees the connection's end")
            left.append(round(server.collect()[0]))
        check(left[-1] - left[0] < ROOM, "RSS after each round of %d answers of 10 MB, in MB: %s" % (CALLS, left))


@case("h2.stall-deadline", "http2")
def _(t):
    """Freed once the deadline has ended the calls."""
    def end(c, sids):
        c.pump(10, lambda: all(c._st(sid)["ended"] for sid in sids))
        check(all(c._st(sid)["ended"] for sid in sids), "the deadline does not end the calls")
    stays(t, end, [("grpc-timeout", "1S")])


@case("h2.stall-reset", "http2")
def _(t):
    """Freed once the client has reset the calls."""
    def end(c, sids):
        for sid in sids:
            c.rst(sid)
    stays(t, end)


@case("h2.stall-close", "http2")
def _(t):
    """Freed once the client has closed the connection."""
    stays(t, lambda c, sids: None)
