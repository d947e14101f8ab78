"""Clients that vanish: their network is cut while they are connected, and neither side is told.

    cut_test.py [--proxy]

In every state that a client can be in (connected, waiting, sending, being sent to, taking nothing) the server has to find
out within a minute, to abort the handlers, and to free calls, sessions, sockets and memory. Clients that are quiet but
alive stay connected meanwhile. The waiting, of a minute at most, is the promise itself: nothing is made shorter for the
test, and everything is cut at once. The last line is "N passed, N failed".
"""
import argparse
import json
import os
import queue
import shlex
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

from checks import Test, first_line
from suite import run

HERE = os.path.dirname(os.path.abspath(__file__))
PROMISE = 60  # seconds from the cut on
RESUME_WINDOW = 10  # what a stream with a request-id gets besides: its reader may come back
WAIT = PROMISE + RESUME_WINDOW + 5
QUIET_MS = 600_000
HALF_OPEN = 200
STREAMS = 60  # of them; the fixture has to stay one instance, which remembers all
ANSWERS = 16  # of 10 MB
MEMORY_ROOM = 100  # MB: less than what the answers take
# Blocks of this size and more go back to the system when they are freed: RSS after a collection then says what is kept.
EXACT = {"MALLOC_MMAP_THRESHOLD_": "131072"}


# ---------------------------------------------------------------- the clients that vanish, a process of its own
def clients(suffix):
    """Connects in every way to the address on standard input, says so, and stays until it is killed."""
    print("here", flush=True)
    host, port = sys.stdin.readline().strip().rsplit(":", 1)
    t = SimpleNamespace(host=host, port=int(port), addr="%s:%s" % (host, port), suffix=suffix)
    kept = [connect(t) for connect in (quiet, flowing, flood, stalled, resumable, answers, chat_turn, chat_idle, batch_busy, batch_quiet, watch, half_open, grpcio)]
    print("connected", flush=True)
    sys.stdin.read()
    return kept


def call(t, path, messages, extra=(), end=True, until=lambda st: st["data"], **kw):
    """A raw call, up to the first thing that comes back."""
    from helpers import h2_open
    c, sid = h2_open(t, path, messages, extra, end, **kw)
    c.pump(20, lambda: until(c._st(sid)))
    if not until(c._st(sid)):
        sys.exit("nothing came of a call to %s: %s" % (path, c._st(sid)))
    return c


def stream(t, key, delay_ms, extra=(), **kw):
    from caselib import MOD
    from helpers import request_bytes
    return call(t, MOD + "StreamPredict", [request_bytes("watched", params={"key": key + t.suffix, "delay_ms": str(delay_ms)})], extra, **kw)


def reading(c):
    """Takes all that comes from now on."""
    def read():
        while c.s.recv(1 << 20):
            pass
    c.s.settimeout(None)
    threading.Thread(target=read, daemon=True).start()
    return c


def quiet(t):
    return stream(t, "quiet", QUIET_MS)


def flowing(t):
    """A token each 5 ms: they go on into the dead connection, which never acknowledges them."""
    c = stream(t, "flowing", 5)
    c.window(0, 2**30)
    c.window(1, 2**30)
    return reading(c)


def flood(t):
    """As many tokens as the connection takes; HTTP/2 holds nothing back."""
    c = stream(t, "flood", 0, settings=[(4, 2**30)])
    c.window(0, 2**30)
    return reading(c)


def stalled(t):
    """No window: the tokens wait in the server."""
    return stream(t, "stalled", 0, settings=[(4, 0)], until=lambda st: st["headers"])


def resumable(t):
    return stream(t, "resumable", QUIET_MS, [("request-id", "resumable" + t.suffix)])


def answers(t):
    import numpy as np
    from caselib import INF, tensor
    from helpers import predict_bytes
    ask = predict_bytes("grow", tensor(np.array([2_500_000], np.float32)))
    return [call(t, INF + "Predict", [ask], settings=[(4, 0)], until=lambda st: st["headers"]) for _ in range(ANSWERS)]


def chat(t, model, session, content):
    from caselib import MOD, mp
    said = mp.UserMessage(session_id=session + t.suffix, content=content).SerializeToString()
    return call(t, MOD + "ChatStream", [said], [("model-id", model)], end=False)


def chat_turn(t):
    return chat(t, "talker", "turn", "slow 1000000")


def chat_idle(t):
    return chat(t, "brief", "idle", "x")


def batch_busy(t):
    """Floods a function that takes one vector: held by flow control, in the middle of a message."""
    from caselib import MOD, frame, ld, packf
    from helpers import h2_open
    c, sid = h2_open(t, MOD + "BatchPredict", [], [("model-id", "gate")], end=False)
    vectors = frame(0, ld(1, "v") + packf(2, [1.0] * 16_000)) * 300
    while vectors:
        n = min(len(vectors), 16_384, c.win, c.streamwin[sid])
        if n <= 0:
            c.pump(1, lambda: min(c.win, c.streamwin[sid]) > 0)
            if min(c.win, c.streamwin[sid]) <= 0:
                return c
            continue
        c.data(sid, vectors[:n])
        vectors = vectors[n:]
        c.win -= n
        c.streamwin[sid] -= n
    sys.exit("the server takes vectors without end")


def batch_quiet(t):
    from caselib import MOD, mp
    from helpers import h2_open
    return h2_open(t, MOD + "BatchPredict", [mp.FeatureVector(features=[1]).SerializeToString()], [("model-id", "sum")], end=False)[0]


def watch(t):
    return call(t, "/grpc.health.v1.Health/Watch", [b""])


def half_open(t):
    """Some in a call, the others at every point before one."""
    import socket
    from caselib import H2
    made = [stream(t, "many", QUIET_MS) for _ in range(STREAMS)]
    for i in range(HALF_OPEN - STREAMS):
        if i % 2:
            c = H2(t)
            c.s.recv(9)  # its settings: the server is there
        else:
            c = socket.create_connection((t.host, t.port))
            c.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[:i % 25])
        made.append(c)
    return made


def grpcio(t):
    """The library itself, with pings of its own and without."""
    import grpc
    import model_inference_pb2 as mp
    import model_inference_pb2_grpc as mpg
    made = []
    for options in ([], PINGS):
        channel = grpc.insecure_channel(t.addr, options=options + [("grpc.use_local_subchannel_pool", 1)])
        tokens = mpg.ModelInferenceStub(channel).StreamPredict(mp.PredictRequest(model_id="watched", params={"key": "grpcio" + t.suffix, "delay_ms": str(QUIET_MS)}))
        next(tokens)
        made.append((channel, tokens))
    return made


PINGS = [("grpc.keepalive_time_ms", 10_000), ("grpc.keepalive_timeout_ms", 5000), ("grpc.keepalive_permit_without_calls", 1), ("grpc.http2.max_pings_without_data", 0)]

RESUMABLE = "a stream with a request-id"

# What each of them leaves behind: a report of a fixture, and what it says when all is over.
AFTERMATH = {
    "a quiet stream": ("watched", "quiet", [1, 1, 1, 1]),
    "a stream in flow": ("watched", "flowing", [1, None, 1, 1]),
    "a stream that floods": ("watched", "flood", [1, None, 1, 1]),
    "a stream whose reader takes nothing": ("watched", "stalled", [1, None, 1, 1]),
    RESUMABLE: ("watched", "resumable", [1, 1, 1, 1]),
    "a chat in a turn": ("talker", "turn", [1, 1, 1]),
    "an idle chat's session": ("brief", "idle", [1]),
    "%d streams of as many connections" % STREAMS: ("watched", "many", [STREAMS] * 4),
    "grpcio's streams": ("watched", "grpcio", [2, 2, 2, 2]),
}


# ---------------------------------------------------------------- those that stay
class Survivors:
    """Quiet clients whose network is not cut: one that pings often, one that never does, each with a stream and a chat."""

    def __init__(self, target):
        import model_inference_pb2 as mp
        import model_inference_pb2_grpc as mpg
        self.calls = []
        for name, options in (("pings each 10 s", PINGS), ("no pings", [])):
            channel = target.channel(*options)
            quiet = target.tokens("counter", 2, {"delay_ms": str(QUIET_MS)}, timeout=None, ch=channel)
            if next(quiet).token != "t0":
                raise RuntimeError("no first token")
            box = queue.Queue()
            box.put(mp.UserMessage(session_id=name, content="x"))
            talk = mpg.ModelInferenceStub(channel).ChatStream(iter(box.get, None), metadata=target.md("parrot"))
            next(talk)
            self.calls.append((name, quiet, talk, box))

    def results(self):
        """Whether each of them is still in its calls."""
        import grpc
        import model_inference_pb2 as mp
        for name, quiet, talk, box in self.calls:
            box.put(mp.UserMessage(session_id=name, content="y"))
            try:
                said = next(talk).content
            except grpc.RpcError as error:
                said = "%s %s" % (error.code().name, error.details())
            state = "open" if quiet.is_active() else quiet.code().name
            yield "a client with %s: its chat answers %r, its stream is %s" % (name, said, state), said == "2: y" and state == "open"
            quiet.cancel()
            box.put(None)


# ---------------------------------------------------------------- the test
def sockets_of(port):
    """Connections of the server in the kernel, by state; those that have ended on both sides left out."""
    states = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table) as f:
            for row in f.readlines()[1:]:
                cols = row.split()
                if int(cols[1].rsplit(":", 1)[1], 16) == port and cols[3] not in ("0A", "06"):
                    states[cols[3]] = states.get(cols[3], 0) + 1
    return states


def descriptors_of(pid):
    """Sockets that a process has open; its workers have some more numbers for the same ones."""
    files = set()
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            files.add(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
        except OSError:
            pass
    return sum(name.startswith("socket:") for name in files)


def busy_calls(server):
    """What `list` says is in progress, by function."""
    argv = shlex.split(os.environ["E2E_DENO"]) + ["run", "-A", "mod.ts", "list", "--port", str(server.port), "--json"]
    from servers import ROOT
    listed = json.loads(subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout)
    return {f["name"]: f["busy"] for f in listed["functions"] if f.get("busy")}


def main(args):
    from caselib import Target
    from cut_network import Cables, Proxy
    from helpers import report, until
    from servers import CollectingServer, FIXTURES

    test = Test()
    network = Proxy() if args.proxy else Cables()
    print("cut by: %s" % network.name, flush=True)
    with CollectingServer(FIXTURES, args=["--host", "0.0.0.0"], env=EXACT) as server:
        t = Target(SimpleNamespace(address=server.address, pid=server.serving_pid(), model_header="model-id"))
        for model in ("watched", "talker", "brief"):  # their instances are there before anything is counted
            report(t, model, "")

        def descriptors():
            return descriptors_of(t.pid)

        def connections():
            return sum(sockets_of(server.port).values())

        vanishing = None

        def connect(suffix):
            child = network.start_clients([sys.executable, os.path.abspath(__file__), "clients", suffix], server.port)
            said = first_line(child, 120)
            if said != "connected":
                raise RuntimeError("the clients did not connect:\n" + server.log())
            return child

        try:
            # Once with clients that are killed, which the kernel tells the server at once: so that the buffers have their size.
            before = descriptors()
            vanishing = connect("-1")
            vanishing.kill()
            until(lambda: descriptors() <= before, 20, "descriptors after clients that were killed")
            network.mend()
            memory = server.collect()

            survivors = Survivors(t)
            before = descriptors(), connections()
            vanishing = connect("-2")
            more = descriptors() - before[0]
            test.check(more >= HALF_OPEN, "%d descriptors more, with calls of %s" % (more, busy_calls(server)))
            network.cut()
            began = time.time()

            def over(what):
                model, key, want = AFTERMATH[what]
                return all(w is None or g == w for g, w in zip(report(t, model, key + "-2"), want))

            checks = {what + " is over": lambda what=what: over(what) for what in AFTERMATH}
            checks["the descriptors are closed"] = lambda: descriptors() <= before[0]
            checks["the kernel has let the connections go"] = lambda: connections() <= before[1]
            top = 0
            while checks and time.time() - began < WAIT:
                top = max(top, server.rss_mb())
                for what in list(checks):
                    if checks[what]():
                        took = time.time() - began
                        test.check(took < PROMISE + RESUME_WINDOW * what.startswith(RESUMABLE), "%s after %.1f s" % (what, took))
                        del checks[what]
                time.sleep(0.25)
            for what in checks:
                test.check(False, "%s: not within %d s (%d descriptors, %d before; connections %s)" % (what, WAIT, descriptors(), before[0], sockets_of(server.port)))
            for text, ok in survivors.results():
                test.check(ok, text)
            now = busy_calls(server)
            test.check(now == {}, "no call is left: %s" % (now or "none"))
            after = server.collect()
            test.check(after and after[0] - memory[0] < MEMORY_ROOM, "memory after a collection: %d, then %d MB; at most %d meanwhile" % (memory[0], after[0] if after else -1, top))
            test.check(server.proc.poll() is None and server.serving_pid() == t.pid, "the same process serves")
            if test.failed:
                print(server.log(40))
        finally:
            if vanishing:
                vanishing.kill()
            t.reset()
    print("%d passed, %d failed" % (test.passed, test.failed))
    return 1 if test.failed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["clients"]:
        clients(sys.argv[2])
        sys.exit()
    parser = argparse.ArgumentParser()
    parser.add_argument("--proxy", action="store_true", help="a proxy though there are namespaces")
    parser.add_argument("--isolated", action="store_true", help=argparse.SUPPRESS)  # it runs in a namespace of its own
    args = parser.parse_args()
    if not args.proxy and not args.isolated:
        from cut_network import isolating_command
        isolated = isolating_command()
        if isolated:
            os.execvp(isolated[0], isolated + [sys.executable, os.path.abspath(__file__), "--isolated"] + sys.argv[1:])
        args.proxy = True
    run(main, args)
