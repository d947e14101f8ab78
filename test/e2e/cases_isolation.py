"""Functions that take their server with them, each on a server of its own: the supervisor and foreign clients."""
import os
import threading
import time

import grpc

from caselib import SC, case, check, mp
from cases_lifecycle import HERE, Own, own
from helpers import refused, until

FAULTS = os.path.join(HERE, "testdata", "faults")
WORKERS = ["--isolation", "worker"]  # whatever level the suite runs at


def alive(pid):
    try:
        os.kill(pid, 0)
        return True
    except ProcessLookupError:
        return False


def neighbours(o, over):
    """Calls another function all the time; (answers, failures)."""
    counts = [0, []]

    def work():
        while not over.is_set():
            try:
                check(list(o.v1("ok", [7]).output_tensor) == [7], "a wrong answer")
                counts[0] += 1
            except grpc.RpcError as e:
                counts[1].append("%s %s" % (e.code().name, e.details()))
            over.wait(0.02)

    thread = threading.Thread(target=work)
    thread.start()
    return thread, counts


@case("iso.spin", "isolation", "endless loop")
def _(t):
    """An endless loop: another process takes over the port, calls in progress finish, the thread's processor is free within 15 s."""
    with own(FAULTS, args=WORKERS) as server:
        o, over = Own(t, server), threading.Event()
        old = server.serving_pid()
        thread, counts = neighbours(o, over)
        try:
            chunks = []
            stream = o.mod.StreamPredict(mp.PredictRequest(model_id="drip", max_tokens=60), timeout=30)
            reader = threading.Thread(target=lambda: chunks.extend(c.token for c in stream))
            reader.start()
            refused(lambda: o.v1("spin", [1], timeout=0.5), SC.DEADLINE_EXCEEDED)
            began = time.time()
            until(lambda: server.serving_pid() not in (None, old), 15, "another process serves")
            reader.join(20)
            check(chunks == ["t%d" % i for i in range(60)], "the stream in progress gave %d tokens of 60" % len(chunks))
            until(lambda: not alive(old), max(0.1, 15 - (time.time() - began)), "the old process has ended")
        finally:
            over.set()
            thread.join()
        check(counts[0] > 50 and not counts[1], "%d calls of another function were right, others: %s" % (counts[0], counts[1][:3]))
        o.reset()


@case("iso.hog", "isolation", "out of memory")
def _(t):
    """A worker out of memory ends its process: served again at once; the second time the function gets a process of its own."""
    with own(FAULTS, args=WORKERS, run_args=["--v8-flags=--max-old-space-size=150"]) as server:
        for times in (1, 2):
            old = server.serving_pid()
            o = Own(t, server)
            refused(lambda: o.v1("hog", [1], timeout=60), SC.UNAVAILABLE)
            o.reset()
            until(lambda: server.serving_pid() not in (None, old), 10, "served again after death %d" % times)
            o = Own(t, server)
            check(list(o.v1("ok", [7]).output_tensor) == [7], "another function after death %d" % times)
            o.reset()
        o, pid = Own(t, server), server.serving_pid()
        refused(lambda: o.v1("hog", [1], timeout=60), SC.RESOURCE_EXHAUSTED, "ran out of memory")
        check(list(o.v1("ok", [7]).output_tensor) == [7], "another function beside the process that died")
        check(server.serving_pid() == pid, "the server's process is another one")
        o.reset()
