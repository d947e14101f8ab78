"""Raw HTTP/2: what no client library would send."""
import os
import socket
import struct
import time

import numpy as np

from caselib import H2, INF, MOD, Skip, arr, case, check, frame, h2_unary, hpack_encode, ip, mp, mpg, parallel, tensor, tokens_ok
from helpers import h2_call, h2_open, predict_bytes, report, request_bytes, send, unique, until

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
BODY = frame(0, predict_bytes("affine", tensor(np.array([1.5, -3], np.float32))))
WANT = np.array([13, 4], np.float32).tobytes()


def fr(typ, flags, sid, body=b""):
    return struct.pack(">I", len(body))[1:] + bytes([typ, flags]) + struct.pack(">I", sid) + body


def head(path=INF + "Predict", extra=(), drop=(), method="POST", ct="application/grpc"):
    h = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "x"), ("te", "trailers"), ("content-type", ct)]
    return hpack_encode([x for x in h if x[0] not in drop] + list(extra))


SETTINGS = fr(4, 0, 0)
START = PREFACE + SETTINGS


def right(r):
    """A raw call's answer is affine's."""
    return r["status"] == 0 and ip.InferenceResponse.FromString(r["data"][5:]).outputs[0].data == WANT


def shout(t, data, reset=False, wait=0.3):
    """Sends bytes on a connection of its own, reads a little, and leaves."""
    s = socket.create_connection((t.host, t.port), timeout=2)
    try:
        s.sendall(data)
        if reset:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            s.settimeout(wait)
            while s.recv(65536):
                pass
    except OSError:
        pass  # that the server hangs up is its right
    finally:
        s.close()


@case("h2.plain", "http2")
def _(t):
    """The naive client itself gets a right answer: one call, and three streams at once."""
    c = H2(t)
    try:
        for sid in (1, 3, 5):
            c.headers(sid, INF + "Predict")
        for sid in (5, 3, 1):
            c.data(sid, BODY, True)
        check(all(right(c.wait(sid)) for sid in (1, 3, 5)), "wrong")
    finally:
        c.close()


@case("h2.bytewise", "http2")
def _(t):
    """A call in single bytes and single-byte DATA frames, padded and with empty frames between."""
    c = H2(t)
    try:
        c.headers(1, INF + "Predict")
        for i in range(len(BODY)):
            c.data(1, BODY[i:i + 1], False)
            if i % 7 == 0:
                c.data(1, b"")
        c.data(1, b"", True)
        check(right(c.wait(1)), "single-byte frames")
        c.headers(3, INF + "Predict")
        c.f(0, 0x9, 3, bytes([20]) + BODY + b"\0" * 20)  # PADDED and END_STREAM
        check(right(c.wait(3)), "padded")
    finally:
        c.close()
    s = socket.create_connection((t.host, t.port), timeout=5)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for b in START + fr(1, 4, 1, head()) + fr(0, 1, 1, BODY):
        s.sendall(bytes([b]))
    got = b""
    s.settimeout(5)
    while WANT not in got:
        d = s.recv(65536)
        check(d, "the connection was closed")
        got += d
    s.close()


@case("h2.continuation", "http2")
def _(t):
    """Headers in pieces, with priority and padding."""
    block = head(extra=[("x-long", "v" * 500)])
    c = H2(t)
    try:
        c.f(1, 0, 1, block[:10])
        c.f(9, 0, 1, block[10:11])
        c.f(9, 4, 1, block[11:])
        c.data(1, BODY, True)
        check(right(c.wait(1)), "CONTINUATION")
        c.f(1, 4 | 8 | 32, 3, bytes([4]) + struct.pack(">IB", 0, 15) + head() + b"\0" * 4)
        c.data(3, BODY, True)
        check(right(c.wait(3)), "PRIORITY and PADDED")
    finally:
        c.close()


@case("h2.head", "http2")
def _(t):
    """HEAD and GET on a connection get an error; later calls on it are served (B026)."""
    c = H2(t)
    try:
        for sid, method in ((1, "HEAD"), (3, "GET"), (5, "OPTIONS"), (7, "PUT"), (9, "PRI")):
            c.headers(sid, INF + "Predict", end=True, method=method)
            r = c.wait(sid)
            check(r["how"] in ("ended", "reset") and r["status"] != 0, "%s: %s" % (method, r))
        c.headers(11, INF + "Predict")
        c.data(11, BODY, True)
        r = c.wait(11)
        check(right(r), "a call after HEAD on the same connection: %s" % r)
    finally:
        c.close()


@case("h2.head-path", "http2")
def _(t):
    """HEAD / without a content type, as curl -I sends it, then a call on the same connection."""
    c = H2(t)
    try:
        c.headers(1, "/", end=True, method="HEAD", drop=("te", "content-type"))
        check(c.wait(1)["how"] in ("ended", "reset"), "HEAD / hangs")
        c.headers(3, INF + "Predict")
        c.data(3, BODY, True)
        check(right(c.wait(3)), "the call after it")
    finally:
        c.close()


@case("h2.content-type", "http2")
def _(t):
    """application/grpc+proto is served; other content types get 415 or an error, the connection lives."""
    c = H2(t)
    try:
        sid = 1
        for ct, ok in (("application/grpc", True), ("application/grpc+proto", True), ("application/json", False), ("text/plain", False), ("", False), ("application/grpcx", None), ("application/grpc-web", None)):
            c.headers(sid, INF + "Predict", ct=ct)
            c.data(sid, BODY, True)
            r = c.wait(sid)
            if ok:
                check(right(r), "%r: %s" % (ct, r))
            else:
                check(r["how"] in ("ended", "reset"), "%r: %s" % (ct, r))
                check(ok is None or r["status"] != 0, "%r was served" % ct)
            sid += 2
    finally:
        c.close()


@case("h2.timeout-header", "http2")
def _(t):
    """grpc-timeout at its edges: the longest legal ones are served, past ones end at once, malformed ones do not hang."""
    for value in ("1H", "99999999H", "99999999M", "99999999S", "2200000S", "99999999m", "99999999u", "5S"):
        r = h2_unary(t, INF + "Predict", BODY, [("grpc-timeout", value)])
        check(right(r), "%s: %s" % (value, r))
    for value in ("0n", "0S", "0m", "1n", "1u"):
        r = h2_unary(t, INF + "Predict", BODY, [("grpc-timeout", value)])
        check(r["how"] in ("ended", "reset") and r["secs"] < 2 and r["status"] in (0, 4, 1, None), "%s: %s" % (value, r))
        key = unique("zero")
        r = h2_call(t, MOD + "StreamPredict", [request_bytes("watched", params={"key": key, "delay_ms": "20"})], [("grpc-timeout", value)], wait=3)
        check(r["how"] in ("ended", "reset") and r["secs"] < 2, "an endless stream with %s: %s" % (value, {k: r[k] for k in ("how", "status", "secs")}))
    for value in ("abc", "-5S", "5", "S", "5X", "", "100000000S", "1.5S", "5 S", " 5S", "+5S", "0x5S", "5s", "99999999999999999999n", "\u0665S".encode().decode("latin1")):
        r = h2_unary(t, INF + "Predict", BODY, [("grpc-timeout", value)])
        check(r["how"] in ("ended", "reset"), "%r: %s" % (value, r))


@case("h2.deadline", "deadline")
def _(t):
    """A unary deadline that only the server keeps: status 4 in time, the handler's signal aborted."""
    key = unique("unary")
    r = h2_call(t, MOD + "Predict", [request_bytes("watched", params={"key": key, "kind": "wait"})], [("grpc-timeout", "300m")])
    check(r["status"] == 4 and 0.2 < r["secs"] < 1.5, "%s" % r)
    got = until(lambda: (lambda x: x if x[3] else None)(report(t, "watched", key)), 1, "the handler's finally")
    check(got == [1, 0, 1, 1], "started, yielded, aborted, ended: %s" % got)


@case("h2.deadline-cancel", "deadline")
def _(t):
    """A unary call that its client resets aborts the handler within 100 ms and some room."""
    key = unique("reset")
    c, sid = h2_open(t, MOD + "Predict", [request_bytes("watched", params={"key": key, "kind": "wait"})])
    try:
        until(lambda: report(t, "watched", key)[0], 2, "the start")
        c.rst(sid)
        until(lambda: report(t, "watched", key)[3], 0.5, "the handler's finally")
    finally:
        c.close()


@case("h2.deadline-seen", "deadline")
def _(t):
    """ctx.remainingMs() is the client's deadline; without one the server's maximum of 60 s."""
    def remaining(**kw):
        return arr(t.inf.Predict(ip.InferenceRequest(model_name="facts"), **kw).outputs[1])[0]
    left = remaining(timeout=5)
    check(4000 < left <= 5100, "5 s: %s" % left)  # client libraries round up
    left = remaining()
    check(55_000 < left <= 60_000, "no deadline: %s" % left)


@case("h2.frames", "http2")
def _(t):
    """Frames that break the protocol end their connection, not the server."""
    for what, data in (
        ("random bytes", os.urandom(4096)), ("HTTP/1.1", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"), ("TLS hello", b"\x16\x03\x01\x02\x00\x01" + os.urandom(300)),
        ("preface and garbage", PREFACE + os.urandom(2000)), ("a frame of 16 MB", START + b"\xff\xff\xff\0\0\0\0\0\x01" + os.urandom(100)),
        ("DATA on stream 0", START + fr(0, 0, 0, b"xx")), ("an even stream", START + fr(1, 5, 2, head())), ("bad HPACK", START + fr(1, 5, 1, b"\xff" * 7)),
        ("HPACK table size 2**31", START + fr(1, 5, 1, b"\x3f\xe1\xff\xff\xff\x07" + head())), ("WINDOW_UPDATE of 0", START + fr(8, 0, 0, b"\0\0\0\0")),
        ("window overflow", START + fr(8, 0, 0, b"\x7f\xff\xff\xff") * 2), ("CONTINUATION alone", START + fr(9, 4, 1)),
        ("DATA between HEADERS and CONTINUATION", START + fr(1, 0, 1, head()) + fr(0, 1, 1, BODY)), ("unknown frames", START + fr(0xfa, 0, 0, b"zz") * 50),
        ("SETTINGS of 3 bytes", PREFACE + fr(4, 0, 0, b"abc")), ("SETTINGS on a stream", START + fr(4, 0, 1)), ("SETTINGS frame size 1", PREFACE + fr(4, 0, 0, struct.pack(">HI", 5, 1))),
        ("initial window 2**32-1", PREFACE + fr(4, 0, 0, struct.pack(">HI", 4, 2**32 - 1))), ("GOAWAY", START + fr(7, 0, 0, b"\0" * 8)),
        ("PUSH_PROMISE", START + fr(5, 4, 1, b"\0\0\0\2" + head())), ("RST of an idle stream", START + fr(3, 0, 99, b"\0\0\0\x08")), ("PING of 3 bytes", START + fr(6, 0, 0, b"abc")),
        ("PRIORITY on itself", START + fr(2, 0, 1, struct.pack(">IB", 1, 0))), ("padding longer than the frame", START + fr(1, 4, 1, head()) + fr(0, 9, 1, b"\xffabc")),
        ("no :path", START + fr(1, 5, 1, head(drop=(":path",)))), ("no pseudo headers", START + fr(1, 5, 1, head(drop=(":path", ":method", ":scheme", ":authority")))),
        ("an upper-case header", START + fr(1, 4, 1, head(extra=[("X-Up", "1")])) + fr(0, 1, 1, BODY)), ("connection header", START + fr(1, 4, 1, head(extra=[("connection", "close")])) + fr(0, 1, 1, BODY)),
        ("bad base64 in -bin", START + fr(1, 4, 1, head(extra=[("x-bin", "!!!")])) + fr(0, 1, 1, BODY)), ("control bytes in a value", START + fr(1, 4, 1, head(extra=[("x-t", "\xff\xfe\x01")])) + fr(0, 1, 1, BODY)),
        ("content-length of 5", START + fr(1, 4, 1, head(extra=[("content-length", "5")])) + fr(0, 1, 1, BODY)), ("DATA after the end", START + fr(1, 5, 1, head()) + fr(0, 1, 1, BODY)),
        ("HEADERS twice", START + fr(1, 4, 1, head()) + fr(1, 4, 1, head()) + fr(0, 1, 1, BODY)), ("a path of 60 KB", START + fr(1, 0, 1, head("/" + "p" * 12_000))),
        ("request trailers", START + fr(1, 4, 1, head()) + fr(0, 0, 1, BODY) + fr(1, 5, 1, hpack_encode([("x-t", "1")]))),
    ):
        shout(t, data)
        try:
            t.alive(3)
        except Exception as error:
            check(False, "after %s: %s" % (what, error))


@case("h2.resets", "http2")
def _(t):
    """Connections that are reset at every stage of a call, on every kind of call."""
    calls = ((INF + "Predict", BODY, ()), (MOD + "StreamPredict", frame(0, request_bytes("counter", max_tokens=100_000)), ()),
             (MOD + "BatchPredict", frame(0, mp.FeatureVector(features=[1]).SerializeToString()) * 100, [("model-id", "sum")]),
             (MOD + "ChatStream", frame(0, mp.UserMessage(session_id="reset", content="x").SerializeToString()) * 100, [("model-id", "parrot")]))
    for path, body, md in calls:
        whole = START + fr(1, 4, 1, head(path, md)) + fr(0, 0, 1, body)
        for n in (10, len(PREFACE), len(START), len(START) + 5, len(START) + 40, len(whole) - 3, len(whole)):
            shout(t, whole[:n], reset=True)
        shout(t, whole + fr(3, 0, 1, b"\0\0\0\x08"), reset=True)
        shout(t, whole + fr(7, 0, 0, b"\0" * 8), reset=True)


@case("h2.goaway", "http2")
def _(t):
    """Clients that say GOAWAY after served streams, in every way, 20 times each: the server lives."""
    for how in ("plain", "error", "open", "data", "max", "wait", "twice"):
        for _ in range(20):
            c = H2(t)
            for sid in (1, 3, 5):
                c.headers(sid, INF + "Predict")
                c.data(sid, BODY, True)
                c.wait(sid)
            if how == "error": c.f(7, 0, 0, b"\0\0\0\0\0\0\0\2")
            elif how == "open":
                c.headers(7, INF + "Predict")
                c.data(7, b"\0\0\0")
                c.f(7, 0, 0, b"\0" * 8)
            elif how == "data":
                c.f(7, 0, 0, b"\0" * 8)
                c.headers(7, INF + "Predict")
                c.data(7, BODY, True)
            elif how == "max": c.f(7, 0, 0, b"\x7f\xff\xff\xff\0\0\0\0")
            elif how == "twice":
                c.f(7, 0, 0, b"\0" * 8)
                c.f(7, 0, 0, b"\0" * 8)
            else: c.f(7, 0, 0, b"\0" * 8)
            if how == "wait":
                c.pump(0.1)
            c.close()


@case("h2.goaway-bad-headers", "http2")
def _(t):
    """GOAWAY before any stream, then HEADERS whose priority is missing, 300 times: the same process lives."""
    shot = START + fr(7, 0, 0, struct.pack(">II", 0, 11)) + fr(1, 0x24, 3, head("/"))
    for _ in range(300):
        s = socket.create_connection((t.host, t.port), timeout=5)
        s.sendall(shot)
        time.sleep(0.002)  # part of what is tried: the server reads before the connection is gone
        s.close()
    t.alive()
    check(not t.pid or t.fds() > 0, "another process answers")


@case("h2.goaway-inflight", "http2")
def _(t):
    """GOAWAY while a stream runs: that stream is finished, or the connection closed; others are untouched."""
    c, sid = h2_open(t, MOD + "StreamPredict", [request_bytes("counter", max_tokens=20, params={"delay_ms": "20"})])
    c.pump(2, lambda: c._st(sid)["data"])
    c.f(7, 0, 0, b"\0" * 8)
    tokens_ok(list(t.tokens(n=20, params={"delay_ms": "5"})), 20)
    r = c.wait(sid, 3)
    check(r["how"] != "hang", "%s" % r)
    c.close()


@case("h2.rapid-reset", "http2")
def _(t):
    """5,000 streams opened and reset at once on one connection: refused or endured, the others are served."""
    s = socket.create_connection((t.host, t.port), timeout=5)
    try:
        s.sendall(START)
        for i in range(0, 5000, 50):
            s.sendall(b"".join(fr(1, 4, 2 * k + 1, head()) + fr(3, 0, 2 * k + 1, b"\0\0\0\x08") for k in range(i, i + 50)))
    except OSError:
        pass
    t.alive(5)
    s.close()


@case("h2.floods", "http2")
def _(t):
    """Floods of PING, SETTINGS, empty DATA, WINDOW_UPDATE, PRIORITY and CONTINUATION: the others are served, memory stays level."""
    before = t.rss_mb()
    for what, lead, item, count in (("PING", b"", fr(6, 0, 0, b"12345678"), 20_000), ("SETTINGS", b"", SETTINGS, 20_000),
                                    ("empty DATA", fr(1, 4, 1, head()), fr(0, 0, 1), 20_000), ("WINDOW_UPDATE", fr(1, 4, 1, head()), fr(8, 0, 1, b"\0\0\0\1"), 20_000),
                                    ("PRIORITY", b"", fr(2, 0, 1, struct.pack(">IB", 0, 1)), 20_000), ("CONTINUATION", fr(1, 0, 1, head()), fr(9, 0, 1, hpack_encode([("x-y", "v" * 4000)])), 3000)):
        s = socket.create_connection((t.host, t.port), timeout=3)
        try:
            s.sendall(START + lead)
            for _ in range(count // 100):
                s.sendall(item * 100)
        except OSError:
            pass
        try:
            t.alive(5)
        except Exception as error:
            check(False, "%s: %s" % (what, error))
        finally:
            s.close()
    if before:
        check(t.rss_mb() - before < 200, "RSS grew from %d to %d MB" % (before, t.rss_mb()))


@case("h2.headers", "http2")
def _(t):
    """Metadata of 4 KB is served; of 60 KB and 1,000 keys it gets an answer of some kind, and the connection or a new one works."""
    r = h2_unary(t, INF + "Predict", BODY, [("x-big", "v" * 4000)])
    check(right(r), "4 KB: %s" % r)
    for extra in ([("x-%d" % i, "v" * 4000) for i in range(15)], [("k%d" % i, "v") for i in range(1000)], [("model-id", "m" * 12_000)]):
        c = H2(t)
        try:
            block = head(extra=extra)
            c.f(1, 0, 1, block[:16_000])
            for i in range(16_000, len(block), 16_000):
                c.f(9, 0, 1, block[i:i + 16_000])
            c.f(9, 4, 1)
            c.data(1, BODY, True)
            r = c.wait(1)
            check(r["how"] != "hang", "%d bytes of headers: %s" % (len(block), r))
        finally:
            c.close()


@case("h2.half", "http2")
def _(t):
    """200 connections that open a call and say no more: others are served at once, and memory does not grow with them."""
    held = []
    try:
        for i in range(200):
            s = socket.create_connection((t.host, t.port), timeout=3)
            s.sendall((START + fr(1, 4, 1, head()) + fr(0, 0, 1, BODY[:7]))[:10 if i % 3 == 0 else None])
            held.append(s)
        start = time.time()
        t.alive(5)
        check(time.time() - start < 3, "a plain call took %.1f s" % (time.time() - start))
    finally:
        for s in held:
            s.close()


@case("h2.window-stall", "http2")
def _(t):
    """20 unary callers that never take their 1 MB answers: others are served; after a reset the memory goes."""
    conns = []
    x = predict_bytes("echo", tensor(np.zeros(250_000, np.float32)))
    try:
        for _ in range(20):
            c = H2(t, settings=[(4, 1)])
            c.auto_window = False
            c.headers(1, INF + "Predict")
            send(c, 1, frame(0, x))
            conns.append(c)
        t.alive(5)
        conns[0].window(0, 2**30)
        conns[0].window(1, 2**30)
        r = conns[0].wait(1, 10)
        check(r["status"] == 0 and len(r["data"]) > 1_000_000, "the answer after the window opened: %s" % {k: r[k] for k in ("how", "status", "secs")})
    finally:
        for c in conns:
            c.close(reset=True)


@case("h2.window-shrink", "http2")
def _(t):
    """A client that changes its initial window to 0 and back in the middle of a stream gets all of it."""
    c = H2(t)
    try:
        c.auto_window = False
        c.headers(1, MOD + "StreamPredict")
        send(c, 1, frame(0, request_bytes("counter", max_tokens=3000)))
        c.pump(3, lambda: len(c._st(1)["data"]) > 1000)
        c.f(4, 0, 0, struct.pack(">HI", 4, 0))
        c.f(4, 0, 0, struct.pack(">HI", 4, 2**31 - 1 - 10_000_000))
        c.window(0, 2**30)
        r = c.wait(1, 10)
        check(r["status"] == 0 and len(r["data"]) > 3000 * 9, "%s" % {k: r[k] for k in ("how", "status", "secs", "rst")})
    finally:
        c.close()


@case("h2.pings", "http2")
def _(t):
    """A ping a second for 8 s beside a quiet stream is answered without GOAWAY (B017, shortened)."""
    c, sid = h2_open(t, MOD + "StreamPredict", [request_bytes("counter", max_tokens=9, params={"delay_ms": "1000"})])
    acks = []
    on = c._on
    def spy(typ, fl, s, p):
        if typ == 6 and fl & 1:
            acks.append(p)
        on(typ, fl, s, p)
    c._on = spy
    try:
        for i in range(8):
            c.f(6, 0, 0, struct.pack(">Q", i))
            stop = time.time() + 1
            while time.time() < stop and not c._st(sid)["ended"] and c.goaway is None and not c.closed:
                c.pump(max(0.01, stop - time.time()))
        r = c.wait(sid, 5)
        check(r["status"] == 0 and c.goaway in (None, 0) and len(acks) == 8, "%d of 8 pings answered, GOAWAY %s, %s" % (len(acks), c.goaway, r["how"]))
    finally:
        c.close()


@case("h2.keepalive", "http2")
def _(t):
    """A client with 10 s keepalive and a stream of 23 s: no GOAWAY, all tokens."""
    ch = t.channel(("grpc.keepalive_time_ms", 10_000), ("grpc.keepalive_timeout_ms", 5000), ("grpc.keepalive_permit_without_calls", 1), ("grpc.http2.max_pings_without_data", 0))
    tokens_ok(list(t.tokens(n=2, params={"delay_ms": "23000"}, timeout=40, ch=ch)), 2)


@case("h2.concurrent", "http2")
def _(t):
    """300 calls at once on one connection, and 100 connections at once: every answer right."""
    c = H2(t)
    try:
        for i in range(100):
            c.headers(2 * i + 1, INF + "Predict")
        for i in range(100):
            c.data(2 * i + 1, BODY, True)
        bad = [i for i in range(100) if not right(c.wait(2 * i + 1, 10))]
        check(not bad, "raw streams %s" % bad[:10])
    finally:
        c.close()
    for r in parallel([lambda: t.v1("affine", [2], timeout=20).output_tensor[0] for _ in range(300)], 60):
        if isinstance(r, BaseException):
            raise r
        check(r == 14, "%s" % r)
    def fresh():
        ch = t.channel()
        v = mpg.ModelInferenceStub(ch).Predict(mp.PredictRequest(model_id="affine", input_tensor=[2]), timeout=20).output_tensor[0]
        ch.close()
        return v
    for r in parallel([fresh] * 100, 50):
        if isinstance(r, BaseException):
            raise r
        check(r == 14, "%s" % r)


@case("h2.no-leak", "http2")
def _(t):
    """1,000 connections that come and go, a call each: descriptors and memory come back."""
    if not t.pid:
        raise Skip("needs --pid")
    def round_trip(n):
        for _ in range(n):
            check(right(h2_unary(t, INF + "Predict", BODY)), "an answer is wrong")
    round_trip(200)
    before, files = t.rss_mb(), t.fds()
    round_trip(1000)
    until(lambda: t.fds() <= files + 3, 5, "descriptors back to %d, now %d" % (files, t.fds()))
    check(t.rss_mb() <= before * 1.15 + 20, "RSS: %d, then %d MB" % (before, t.rss_mb()))
