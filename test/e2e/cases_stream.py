"""StreamPredict: tokens, their numbering and ends, slow and leaving readers, resumption."""
import re
import time

import grpc

from caselib import H2, MOD, SC, call_error, case, check, expect, frame, mp, mpg, parallel, tokens_ok
from helpers import INVALID, h2_call, h2_open, messages_of, refused, report, request_bytes, send, unique, until


def shape_of(chunks):
    return [(c.index, c.token, c.is_final) for c in chunks]


def kind(t, name, n=0, **params):
    return shape_of(t.tokens("tokens", n, dict(params, kind=name)))


@case("stream.end", "stream")
def _(t):
    """One final chunk, the last: the marked token, the max_tokens-th, or an empty one after the last token."""
    check(kind(t, "plain") == [(0, "p0", False), (1, "p1", False), (2, "p2", False), (3, "", True)], "unmarked: %s" % kind(t, "plain"))
    check(kind(t, "plain", 2) == [(0, "p0", False), (1, "p1", True)], "cut by max_tokens: %s" % kind(t, "plain", 2))
    check(kind(t, "plain", 1) == [(0, "p0", True)], "max_tokens 1: %s" % kind(t, "plain", 1))
    check(kind(t, "plain", 3) == [(0, "p0", False), (1, "p1", False), (2, "p2", True)], "max_tokens as many as there are: %s" % kind(t, "plain", 3))
    check(kind(t, "plain", 9) == [(0, "p0", False), (1, "p1", False), (2, "p2", False), (3, "", True)], "max_tokens beyond: %s" % kind(t, "plain", 9))
    check(kind(t, "none") == [(0, "", True)] and kind(t, "none", 5) == [(0, "", True)], "no tokens: %s" % kind(t, "none"))
    check(kind(t, "early") == [(0, "a", False), (1, "b", True)], "marked early: %s" % kind(t, "early"))
    check(kind(t, "early", 1) == [(0, "a", True)], "max_tokens before the mark: %s" % kind(t, "early", 1))
    check(kind(t, "empty_final") == [(0, "a", False), (1, "", True)], "an empty marked token: %s" % kind(t, "empty_final"))
    check(kind(t, "emit") == [(0, "e0", False), (1, "e1", False), (2, "e2", False), (3, "", True)], "emit: %s" % kind(t, "emit"))
    check(kind(t, "emit", 2) == [(0, "e0", False), (1, "e1", True)], "emit, max_tokens: %s" % kind(t, "emit", 2))


@case("stream.counts", "stream")
def _(t):
    """counter at many max_tokens, the default among them."""
    for n in (1, 2, 15, 16, 17, 33, 100, 1000):  # grpc-js buffers 16 messages
        tokens_ok(list(t.tokens(n=n)), n)
    tokens_ok(list(t.tokens()), 5)


@case("stream.text", "stream")
def _(t):
    """Half a character becomes U+FFFD or is joined, never a broken message; a one-element string tensor is its text."""
    got = kind(t, "surrogate")
    check("".join(x[1] for x in got) == "\ufffdok", "surrogate: %s" % got)
    check([x[1] for x in kind(t, "text")][0] == "word", "text: %s" % kind(t, "text"))
    refused(lambda: kind(t, "tensor"), SC.FAILED_PRECONDITION, "InferenceService")
    got = shape_of(t.tokens("words"))
    check(got[0][1] == "h\u00e9llo \U0001f600" and [x[2] for x in got] == [False] * (len(got) - 1) + [True], "predict's one-chunk stream: %s" % got)
    refused(lambda: list(t.tokens("sum")), SC.FAILED_PRECONDITION)


@case("stream.trailers", "stream")
def _(t):
    """latency-ms, time-to-first-token-ms and tokens; the empty final chunk does not count."""
    for model, n, params, tokens in (("counter", 7, {}, 7), ("tokens", 0, {"kind": "plain"}, 3), ("tokens", 0, {"kind": "none"}, 0), ("tokens", 2, {}, 2)):
        call = t.tokens(model, n, params)
        list(call)
        md = dict(call.trailing_metadata())
        check(md.get("tokens") == str(tokens), "%s %s: tokens %r, want %d" % (model, params, md.get("tokens"), tokens))
        check(float(md["latency-ms"]) >= 0, "latency-ms %s" % md)
        if tokens:
            check(0 <= float(md["time-to-first-token-ms"]) <= float(md["latency-ms"]) + 1, "%s" % md)
    call = t.tokens("counter", 4, {"delay_ms": "100"})
    list(call)
    md = dict(call.trailing_metadata())
    check(float(md["latency-ms"]) >= 295 and float(md["time-to-first-token-ms"]) < 200, "%s" % md)


@case("stream.first", "stream")
def _(t):
    """The first token is not held back for the second."""
    call = t.tokens("counter", 3, {"delay_ms": "1500"})
    start = time.time()
    first = next(call)
    check(first.token == "t0" and time.time() - start < 0.7, "the first token took %.1f s" % (time.time() - start))
    call.cancel()


@case("stream.error-late", "stream")
def _(t):
    """Ten tokens, then an exception: all ten come, then INTERNAL (B019)."""
    for _ in range(20):
        got = []
        try:
            for c in t.tokens("burst"):
                got.append(c)
            check(False, "burst ended without an error")
        except grpc.RpcError as e:
            check(e.code() is SC.INTERNAL and "secret" not in e.details(), "%s %r" % (e.code().name, e.details()))
        check([c.token for c in got] == ["t%d" % i for i in range(10)], "%d tokens came: %s" % (len(got), [c.token for c in got]))
        check(not any(c.is_final for c in got), "a stream that failed had a final token")
    tokens_ok(list(t.tokens(n=3)), 3)
    check([c.is_final for c in t.tokens("burst", 10)] == [False] * 9 + [True], "max_tokens 10 ends burst before it throws")


@case("stream.error-model", "stream")
def _(t):
    """A ModelError after a token keeps its code."""
    call = t.tokens("refuse", params={"kind": "unavailable"})
    check(next(call).token == "before", "no token before the error")
    refused(lambda: list(call), SC.UNAVAILABLE, "cannot go on")
    for k in ("null", "undefined", "hostile", "long"):
        call = t.tokens("refuse", params={"kind": k})
        next(call)
        expect(lambda: list(call), (SC.INTERNAL, INVALID), absent=("secret",), what=k)


@case("stream.cancel", "stream")
def _(t):
    """A cancel aborts the handler's signal before its next token and runs its finally (B093), within 100 ms and some room."""
    key = unique("cancel")
    call = t.tokens("watched", 1000, {"key": key, "delay_ms": "1000"})
    next(call)
    call.cancel()
    start = time.time()
    got = until(lambda: (lambda r: r if r[3] else None)(report(t, "watched", key)), 0.5, "the generator's finally")
    check(got == [1, 1, 1, 1], "started, yielded, aborted, ended: %s after %.3f s" % (got, time.time() - start))


@case("stream.vanish", "stream")
def _(t):
    """A reader whose connection is reset aborts the handler too."""
    key = unique("vanish")
    c, sid = h2_open(t, MOD + "StreamPredict", [request_bytes("watched", max_tokens=1000, params={"key": key, "delay_ms": "1000"})])
    c.pump(3, lambda: c._st(sid)["data"])
    c.close(reset=True)
    got = until(lambda: (lambda r: r if r[3] else None)(report(t, "watched", key)), 1, "the generator's finally")
    check(got == [1, 1, 1, 1], "%s" % got)


@case("stream.max", "stream")
def _(t):
    """4,294,967,295 tokens of a fast loop: cancelled after 1,000, it stops; memory stays level, others are served."""
    before = t.rss_mb()
    for model in ("endless", "counter", "watched"):
        key = unique("max")
        call = t.tokens(model, 2**32 - 1, {"key": key} if model == "watched" else {}, timeout=30)
        for i in range(1000):
            check(next(call).index == i, "index %d" % i)
        check(list(t.v1("affine", [1]).output_tensor) == [12], "another call while it runs")
        call.cancel()
        if model == "watched":
            until(lambda: report(t, "watched", key)[3], 2, "the generator's finally")
    if before:
        check(t.rss_mb() - before < 200, "RSS grew from %d to %d MB" % (before, t.rss_mb()))


@case("stream.endless", "stream")
def _(t):
    """A tight endless loop without max_tokens: other calls are answered, a cancel ends it, ten at once too."""
    calls = [t.tokens("endless", timeout=30) for _ in range(10)]
    for c in calls:
        next(c)
    start = time.time()
    check(list(t.v1("affine", [1]).output_tensor) == [12], "affine")
    check(time.time() - start < 3, "a plain call took %.1f s beside ten endless streams" % (time.time() - start))
    for c in calls:
        c.cancel()
    tokens_ok(list(t.tokens(n=50)), 50)


@case("stream.slow-reader", "stream")
def _(t):
    """A reader that gives no window stops the generator; with a window again all tokens come, in order."""
    key = unique("stall")
    c = H2(t, settings=[(4, 0)])  # initial window 0: the server may send headers only
    try:
        c.auto_window = False
        c.headers(1, MOD + "StreamPredict")
        send(c, 1, frame(0, request_bytes("watched", max_tokens=20_000, params={"key": key})))
        c.pump(1.0, lambda: c._st(1)["data"])
        check(not c._st(1)["data"], "data came without a window")
        yielded = report(t, "watched", key)[1]
        check(yielded < 5000, "the generator ran %d tokens ahead of a reader that takes none" % yielded)
        c.window(1, 10)
        c.pump(2, lambda: len(c._st(1)["data"]) >= 10)
        check(len(c._st(1)["data"]) == 10, "a window of 10 bytes let %d through" % len(c._st(1)["data"]))
        c.window(0, 2**30)
        c.window(1, 2**30)
        r = c.wait(1, 20)
        chunks = [mp.TokenChunk.FromString(m) for m in messages_of(r["data"])]
        check(r["status"] == 0 and [x.index for x in chunks] == list(range(20_000)), "%s, %d chunks" % (r["how"], len(chunks)))
    finally:
        c.close()


@case("stream.stalled-leaves", "stream")
def _(t):
    """A stalled reader that resets its stream aborts the generator that waits for it."""
    key = unique("stalled")
    c = H2(t, settings=[(4, 0)])
    try:
        c.headers(1, MOD + "StreamPredict")
        send(c, 1, frame(0, request_bytes("watched", max_tokens=20_000, params={"key": key})))
        until(lambda: report(t, "watched", key)[1] > 0, 2, "the first token")
        c.rst(1)
        until(lambda: report(t, "watched", key)[3], 1, "the generator's finally")
    finally:
        c.close()


@case("stream.deadline", "deadline")
def _(t):
    """The client's deadline ends a stream with status 4 and aborts its handler, though the client keeps no timer."""
    key = unique("deadline")
    r = h2_call(t, MOD + "StreamPredict", [request_bytes("watched", params={"key": key, "delay_ms": "50"})], [("grpc-timeout", "300m")])
    check(r["how"] in ("ended", "reset") and (r["status"] == 4 or r["how"] == "reset") and r["secs"] < 1.5, "%s" % r)
    got = until(lambda: (lambda x: x if x[3] else None)(report(t, "watched", key)), 1, "the generator's finally")
    check(got[2] == 1 and 3 <= got[1] <= 8, "started, yielded, aborted, ended: %s" % got)


@case("stream.no-deadline", "deadline")
def _(t):
    """Streams have no default deadline; a given one is what the handler sees."""
    got = [c.token for c in mpg.ModelInferenceStub(t.ch).StreamPredict(mp.PredictRequest(model_id="facts"))]
    check(got[0] == "Infinity", "remainingMs() of a stream without a deadline is %s" % got[0])
    got = [c.token for c in t.tokens("facts", timeout=5)]
    check(4000 < float(got[0]) <= 5100, "remainingMs() of 5 s is %s" % got[0])


@case("stream.parallel", "stream")
def _(t):
    """100 streams at once on one connection, each whole."""
    for r in parallel([lambda i=i: tokens_ok(list(t.tokens(n=20 + i)), 20 + i) for i in range(100)], 50):
        if isinstance(r, BaseException):
            raise r


@case("stream.bad", "stream")
def _(t):
    """Bad params, garbage and two messages on a stream: a status without tokens."""
    refused(lambda: list(t.tokens("counter", params={"delay_ms": "x"})), INVALID, "delay_ms")
    refused(lambda: list(t.tokens("counter", params={"nope": "1"})), INVALID, "nope")
    r = h2_call(t, MOD + "StreamPredict", [b"\xff\xff\xff"])
    check(r["status"] == 3 and not r["data"], "garbage: %s" % r)
    r = h2_call(t, MOD + "StreamPredict", [])
    check(r["how"] in ("ended", "reset") and r["status"] != 0, "no message: %s" % r)
    list(mpg.ModelInferenceStub(t.ch).StreamPredict(mp.PredictRequest(model_id="counter"), timeout=5, compression=grpc.Compression.Gzip))


# ---------------------------------------------------------------- resumption
def ask(t, rid, n=0, params=None, model="counter", timeout=10):
    return t.mod.StreamPredict(mp.PredictRequest(model_id=model, max_tokens=n, params=params or {}), timeout=timeout, metadata=(("request-id", rid),))


@case("resume.finished", "resume")
def _(t):
    """A finished request is replayed from an index on, with its numbering and its final mark."""
    rid = unique("done")
    tokens_ok(list(ask(t, rid, 10)), 10)
    got = shape_of(ask(t, rid, 10, {"resume_from": "7"}))
    check(got == [(7, "t7", False), (8, "t8", False), (9, "t9", True)], "%s" % got)
    got = shape_of(ask(t, rid, 10, {"resume_from": "0"}))
    check([x[0] for x in got] == list(range(10)), "%s" % got)


@case("resume.dropped", "resume")
def _(t):
    """A dropped reader of a request with an id comes back and gets the rest, live, without a second run."""
    rid, key = unique("drop"), unique("drop")
    params = {"key": key, "delay_ms": "50"}
    call = ask(t, rid, 30, params, "watched")
    got = [next(call) for _ in range(5)]
    call.cancel()
    got += list(ask(t, rid, 30, dict(params, resume_from="5"), "watched"))
    check(shape_of(got) == [(i, "w%d" % i, i == 29) for i in range(30)], "%s" % shape_of(got))
    check(report(t, "watched", key)[0] == 1, "the function ran %d times" % report(t, "watched", key)[0])


@case("resume.errors", "resume")
def _(t):
    """The same id again: ALREADY_EXISTS. An index that was never sent, is no number, or an unknown id: an error that says so."""
    rid = unique("err")
    tokens_ok(list(ask(t, rid, 5)), 5)
    refused(lambda: list(ask(t, rid, 5)), SC.ALREADY_EXISTS, rid)
    expect(lambda: list(ask(t, rid, 5, {"resume_from": "99"})), (SC.OUT_OF_RANGE, INVALID))
    for bad in ("x", "-1", "1.5", "", "NaN", "9" * 30):
        expect(lambda: list(ask(t, rid, 5, {"resume_from": bad})), (INVALID, SC.OUT_OF_RANGE), what=bad)
    expect(lambda: list(ask(t, unique("nobody"), 5, {"resume_from": "3"})), (SC.NOT_FOUND, SC.OUT_OF_RANGE, INVALID, SC.FAILED_PRECONDITION))


@case("resume.window", "resume")
def _(t):
    """What has left the bounded window is OUT_OF_RANGE with the first index that can still be had."""
    rid = unique("window")
    n = 0
    for c in ask(t, rid, 50_000, timeout=60):
        n += 1
    check(n == 50_000, "%d tokens" % n)
    code, d = call_error(lambda: [c.index for c in ask(t, rid, 50_000, {"resume_from": "0"}, timeout=60)])
    if code is SC.OK:
        check(d == list(range(50_000)), "the replay is not whole")
        return
    check(code is SC.OUT_OF_RANGE, "%s %r" % (code.name, d))
    first = max(int(x) for x in re.findall(r"\d+", d.replace(rid, "")) if int(x) < 50_000)
    got = [c.index for c in ask(t, rid, 50_000, {"resume_from": str(first)}, timeout=60)]
    check(got == list(range(first, 50_000)), "from %d on, as the message says, %d tokens came" % (first, len(got)))
