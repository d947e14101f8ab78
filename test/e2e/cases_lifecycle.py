"""Start, readiness and shutdown, each on a server of its own (E2E_DENO is the command that starts it)."""
import os
import queue
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import grpc
import health_pb2 as hp
import health_pb2_grpc as hpg
import numpy as np

from caselib import H2, MOD, SC, Skip, Target, arr, call_error, case, check, frame, ld, mp, mpg, packf, tensor, tokens_ok
from helpers import send
from servers import FIXTURES, Server

HERE = os.path.dirname(os.path.abspath(__file__))
GRACE = 10  # seconds that streams in flight may take, by default


class Own(Target):
    """A target on a server that the case started."""

    def __init__(self, t, server):
        super().__init__(type("Args", (), dict(vars(t), address=server.address, pid=None)))


def own(functions=FIXTURES, kind=Server, **kw):
    if not os.environ.get("E2E_DENO"):
        raise Skip("needs E2E_DENO, the deno command")
    return kind(functions, **kw)


def gone(server, secs, status=0):
    """The process ends by itself, in time, with that status."""
    got, took = server.wait(secs)
    check(got is not None, "the server still runs after %d s:\n%s" % (secs, server.log(10)))
    check(got == status, "exit status %s, %s was expected:\n%s" % (got, status, server.log(10)))
    return took


@case("life.single", "lifecycle", "shutdown")
def _(t):
    """An empty name means the one function that can answer this RPC."""
    with own(os.path.join(HERE, "testdata", "single")) as server:
        o = Own(t, server)
        x = np.arange(3, dtype=np.float32)
        check(np.array_equal(arr(o.predict("", tensor(x)).outputs[0]), x), "InferenceService")
        check(list(o.v1("", [1, 2]).output_tensor) == [1, 2], "ModelInference")
        check([c.token for c in o.tokens("")][0] == "only", "StreamPredict")
        r = o.mod.BatchPredict(iter([mp.FeatureVector(features=[1])]), timeout=5)
        check(r.total_processed == 1, "BatchPredict without model-id")
        code, d = call_error(lambda: list(o.mod.ChatStream(iter([mp.UserMessage(content="x")]), timeout=5)))
        check(code in (SC.INVALID_ARGUMENT, SC.UNIMPLEMENTED), "ChatStream where nothing can chat: %s %r" % (code.name, d))
        o.reset()


@case("life.term", "lifecycle", "shutdown")
def _(t):
    """SIGTERM and SIGINT to an idle server that has served: exit 0 within 3 s (B100), with connections open too."""
    for number in (signal.SIGTERM, signal.SIGINT):
        for connected in (False, True):
            with own() as server:
                o = Own(t, server)
                check(list(o.v1("affine", [1]).output_tensor) == [12], "affine")
                if not connected:
                    o.reset()
                server.signal(number)
                took = gone(server, 8)
                check(took < 3, "%s, connected %s: %.1f s" % (number.name, connected, took))
                o.reset()


@case("life.quiet", "lifecycle", "shutdown")
def _(t):
    """Watches, idle and half-open connections, an idle chat and a client that ignores GOAWAY do not hold the server beyond its grace."""
    with own() as server:
        o = Own(t, server)
        watch = hpg.HealthStub(o.ch).Watch(hp.HealthCheckRequest(), timeout=60)
        check(next(watch).status == hp.HealthCheckResponse.SERVING, "Watch")
        box = queue.Queue()
        box.put(mp.UserMessage(session_id="quiet", content="x"))
        chat = o.mod.ChatStream(iter(box.get, None), timeout=60, metadata=o.md("parrot"))
        next(chat)
        raw = [socket.create_connection((o.host, o.port)) for _ in range(3)]
        raw[1].sendall(b"PRI * HTTP/2.0\r\n")
        deaf = H2(o)
        deaf.headers(1, MOD + "ChatStream", [("model-id", "parrot")])
        send(deaf, 1, frame(0, mp.UserMessage(session_id="deaf", content="x").SerializeToString()), end=False)
        deaf.pump(3, lambda: deaf._st(1)["data"])
        server.signal()
        took = gone(server, GRACE + 5)
        check(took < GRACE + 3, "%.1f s" % took)
        code, _d = call_error(lambda: list(chat))
        check(code in (SC.UNAVAILABLE, SC.OK, SC.CANCELLED), "the chat ended with %s" % code.name)
        box.put(None)
        deaf.close()
        [s.close() for s in raw]
        o.reset()


@case("life.drain", "lifecycle", "shutdown")
def _(t):
    """After SIGTERM a stream in flight gets all its tokens, Watch says NOT_SERVING, new connections are refused, then exit 0."""
    with own() as server:
        o = Own(t, server)
        health, states = hpg.HealthStub(o.channel()).Watch(hp.HealthCheckRequest(), timeout=30), queue.Queue()
        def watch():
            try:
                for m in health:
                    states.put(m.status)
            except grpc.RpcError:
                pass
            states.put(None)
        threading.Thread(target=watch, daemon=True).start()
        check(states.get(timeout=5) == hp.HealthCheckResponse.SERVING, "SERVING first")
        call = o.tokens("counter", 30, {"delay_ms": "100"}, timeout=30)
        slow = o.mod.Predict.future(mp.PredictRequest(model_id="slow", params={"delay_ms": "1500"}, input_tensor=[7]), timeout=30)
        got = [next(call) for _ in range(5)]
        server.signal()
        check(states.get(timeout=2) == hp.HealthCheckResponse.NOT_SERVING, "NOT_SERVING after SIGTERM")
        try:
            socket.create_connection((o.host, o.port), timeout=2).close()
            late = True
        except OSError:
            late = False
        got += list(call)
        tokens_ok(got, 30)
        check(list(slow.result().output_tensor) == [7], "the unary call in flight")
        took = gone(server, GRACE)
        check(took < 3, "%.1f s after the last call" % took)
        check(not late, "a new connection was taken while the server drained")
        o.reset()


def notice(t, at_once):
    """Two calls around a shutdown's notice; the second one before the answer to its ping, or in one write with it."""
    with own() as server:
        c = H2(Own(t, server))
        on, tx, frames = c._on, c.tx, []
        def late(typ, fl, sid, p):
            if typ == 7:
                frames.append(struct.unpack(">I", p[:4])[0])
            elif typ == 6 and not fl & 1 and frames:
                frames.append(p)  # not answered yet
            else:
                on(typ, fl, sid, p)
        def ask(sid):
            c.headers(sid, MOD + "Predict")
            c.data(sid, frame(0, mp.PredictRequest(model_id="affine", input_tensor=[sid]).SerializeToString()), True)
        c._on = late
        try:
            ask(1)
            check(c.wait(1)["status"] == 0, "the call before")
            server.signal()
            c.pump(5, lambda: len(frames) == 2)
            check(frames[:1] == [0x7fffffff] and len(frames) == 2, "a notice and a ping were wanted: %s" % frames)
            if at_once:
                written = []
                c.tx = written.append
                ask(3)
                c.f(6, 1, 0, frames[1])
                tx(b"".join(written))
                c.tx = tx
            else:
                ask(3)
            r = c.wait(3)
            check(r["status"] == 0, "the call on its way: %s" % r)
            if not at_once:
                c.f(6, 1, 0, frames[1])
            c.pump(5, lambda: len(frames) == 3)
            check(frames[2:] == [3], "the last GOAWAY names stream 3: %s" % frames)
        finally:
            c.close()
        gone(server, 3)


@case("life.notice", "lifecycle", "shutdown")
def _(t):
    """GOAWAY comes twice: what a client sends before it has seen the first one is answered, and only then calls are refused."""
    notice(t, at_once=False)


@case("life.notice-at-once", "lifecycle", "shutdown")
def _(t):
    """A call is taken also where the answer to the ping comes in the same read, and is heard of earlier."""
    notice(t, at_once=True)


@case("life.grace", "lifecycle", "shutdown")
def _(t):
    """A stream longer than the grace is ended as UNAVAILABLE; the server exits 0."""
    with own() as server:
        o = Own(t, server)
        call = o.tokens("counter", 1000, {"delay_ms": "200"}, timeout=60)
        next(call)
        server.signal()
        start = time.time()
        code, d = call_error(lambda: list(call))
        check(code is SC.UNAVAILABLE, "the stream ended with %s %s" % (code.name, d if code is not SC.OK else ""))
        check(GRACE - 3 < time.time() - start < GRACE + 3, "it ended after %.1f s" % (time.time() - start))
        gone(server, 5)
        o.reset()


@case("life.second", "lifecycle", "shutdown")
def _(t):
    """A second signal ends the server at once."""
    with own() as server:
        o = Own(t, server)
        call = o.tokens("counter", 1000, {"delay_ms": "200"}, timeout=60)
        next(call)
        health = hpg.HealthStub(o.channel()).Watch(hp.HealthCheckRequest(), timeout=30)
        next(health)
        server.signal()
        check(next(health).status == hp.HealthCheckResponse.NOT_SERVING, "NOT_SERVING")  # the first signal has been seen
        server.signal()
        got, took = server.wait(5)
        check(got is not None and took < 2, "after the second signal: %.1f s, status %s" % (took, got))
        o.reset()


@case("life.vanished", "lifecycle", "shutdown")
def _(t):
    """A streaming client that was killed does not hold the shutdown (B011)."""
    with own() as server:
        o = Own(t, server)
        program = ("import sys, grpc, model_inference_pb2 as mp, model_inference_pb2_grpc as mpg\n"
                   "s = mpg.ModelInferenceStub(grpc.insecure_channel(sys.argv[1]))\n"
                   "for c in s.StreamPredict(mp.PredictRequest(model_id='counter', max_tokens=10000, params={'delay_ms': '200'})): print(c.token, flush=True)\n")
        child = subprocess.Popen([sys.executable, "-c", program, server.address], stdout=subprocess.PIPE, text=True)
        check(child.stdout.readline() == "t0\n", "the client got no token")
        child.kill()
        child.wait()
        server.signal()
        took = gone(server, GRACE + 5)
        check(took < 5, "%.1f s" % took)
        o.reset()


@case("life.early-answer", "lifecycle", "shutdown")
def _(t):
    """A client stream that was answered before its end does not hold the shutdown (B013)."""
    with own() as server:
        o = Own(t, server)
        c = H2(o)
        c.headers(1, MOD + "BatchPredict", [("model-id", "strict")])
        send(c, 1, frame(0, ld(1, "a") + packf(2, [1])), end=False)
        r = c.wait(1, 5)
        check(r["status"] == 11, "%s" % r)
        server.signal()
        took = gone(server, GRACE + 5)
        check(took < 5, "%.1f s" % took)
        c.close()
        o.reset()


@case("life.load", "lifecycle", "shutdown")
def _(t):
    """SIGTERM under load: every call ends with its right answer or UNAVAILABLE, none hangs, exit 0."""
    with own() as server:
        o = Own(t, server)
        bad, stop, started = [], threading.Event(), threading.Event()
        def work(i):
            ch = o.channel()
            stub = mpg.ModelInferenceStub(ch)
            while not stop.is_set():
                try:
                    if i % 2:
                        got = list(stub.Predict(mp.PredictRequest(model_id="affine", input_tensor=[i]), timeout=15).output_tensor)
                        if got != [i * 2 + 10]: bad.append(got)
                    else:
                        tokens_ok(list(stub.StreamPredict(mp.PredictRequest(model_id="counter", max_tokens=20), timeout=15)), 20)
                    started.set()
                except grpc.RpcError as e:
                    if e.code() is not SC.UNAVAILABLE: bad.append((e.code().name, e.details()))
                    return
                except Exception as e:
                    bad.append(str(e))
        threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(8)]
        [x.start() for x in threads]
        check(started.wait(10), "no call came through")
        server.signal()
        took = gone(server, GRACE + 5)
        stop.set()
        [x.join(20) for x in threads]
        check(not any(x.is_alive() for x in threads), "a call hangs")
        check(not bad, "%d calls ended wrongly: %s" % (len(bad), bad[:5]))
        check(took < 5, "%.1f s" % took)
        o.reset()


@case("life.warm", "lifecycle", "shutdown")
def _(t):
    """NOT_SERVING until a function marked warm has loaded, then SERVING, and it answers at once (B098)."""
    with socket.socket() as s:  # the address has to be known before the server prints it
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with own(os.path.join(HERE, "testdata", "warm"), port=port, wait=False) as server:
        o = Own(t, server)
        stub = hpg.HealthStub(o.channel())
        seen = []
        for m in stub.Watch(hp.HealthCheckRequest(), timeout=60, wait_for_ready=True):
            seen.append((m.status, time.time()))
            if m.status == hp.HealthCheckResponse.SERVING:
                break
        check([s for s, _w in seen] == [hp.HealthCheckResponse.NOT_SERVING, hp.HealthCheckResponse.SERVING], "statuses %s" % [s for s, _w in seen])
        start = time.time()
        check(list(o.v1("heavy", [5]).output_tensor) == [5] and time.time() - start < 1, "the first call took %.1f s" % (time.time() - start))
        o.reset()
