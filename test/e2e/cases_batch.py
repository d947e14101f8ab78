"""BatchPredict: order, chunks, bad vectors, flow control."""
import queue
import time

import grpc
import numpy as np

from caselib import H2, MOD, SC, case, check, f32, frame, ld, mp, packf, parallel
from helpers import INVALID, h2_call, h2_open, refused


def batch(t, model, vectors, timeout=15, md=(), **kw):
    return t.mod.BatchPredict(iter(vectors), timeout=timeout, metadata=t.md(model) + tuple(md), **kw)


def vectors(rows):
    return [mp.FeatureVector(id=str(i), features=r) for i, r in enumerate(rows)]


@case("batch.order", "batch")
def _(t):
    """Answers in order of arrival, counted, around and far beyond the size of a chunk."""
    for n in (1, 2, 31, 32, 33, 64, 100, 5000):
        r = batch(t, "sum", vectors([i, 1] for i in range(n)))
        check(r.total_processed == n and [list(x.output_tensor) for x in r.results] == [[i + 1.0] for i in range(n)], "%d vectors: total %d" % (n, r.total_processed))
        check(all(x.model_version == "1" and x.latency_ms >= 0 for x in r.results), "model_version, latency_ms of %d" % n)


@case("batch.empty", "batch")
def _(t):
    """An empty stream: OK, nothing, 0; an unknown function fails all the same."""
    r = batch(t, "sum", [])
    check(r.total_processed == 0 and not r.results, "%s" % r)
    refused(lambda: batch(t, "nope", []), SC.NOT_FOUND, "nope")


@case("batch.chunks", "batch")
def _(t):
    """The function never gets more vectors than its batch size, and does get several."""
    r = batch(t, "chunks", vectors([i, 1] for i in range(50)))
    sizes = [x.output_tensor[0] for x in r.results]
    check(r.total_processed == 50 and max(sizes) <= 4, "chunks of %s" % sizes)
    check(max(sizes) > 1, "vectors that were all there came one by one")


@case("batch.trickle", "batch")
def _(t):
    """Vectors that come one at a time are all answered."""
    box = queue.Queue()
    call = t.mod.BatchPredict.future(iter(box.get, None), timeout=15, metadata=t.md("sum"))
    for i in range(10):
        box.put(mp.FeatureVector(features=[i]))
        t.v1("affine", [1])  # gives each vector the time of a whole call
    box.put(None)
    r = call.result()
    check([x.output_tensor[0] for x in r.results] == list(range(10)) and r.total_processed == 10, "%s" % r)


@case("batch.bad", "batch")
def _(t):
    """A vector that does not fit the spec: INVALID_ARGUMENT with its id and position."""
    rows = [[1, 2]] * 40
    for at in (0, 1, 37):
        vs = vectors(rows)
        vs[at] = mp.FeatureVector(id="the-bad-one", features=[1, 2, 3])
        refused(lambda: batch(t, "chunks", vs), INVALID, "the-bad-one", str(at), "3", "2", what="at %d" % at)
    vs = vectors(rows)
    vs[5] = mp.FeatureVector(features=[])
    refused(lambda: batch(t, "chunks", vs), INVALID, "5", what="no id, no features")
    vs[5] = mp.FeatureVector(id="i" * 100_000, features=[1])
    d = refused(lambda: batch(t, "chunks", vs), INVALID, "iii", what="a long id")
    check(len(d) < 8000, "the message has %d characters" % len(d))
    refused(lambda: batch(t, "rows", [mp.FeatureVector(id="r", features=[1])]), INVALID, "r", "0")


@case("batch.item-error", "batch")
def _(t):
    """A ModelError for one item fails the RPC with its code, the item's id and position."""
    vs = vectors([[1, 2]] * 20)
    vs[13] = mp.FeatureVector(id="odd", features=[-1, 0])
    refused(lambda: batch(t, "chunks", vs), SC.FAILED_PRECONDITION, "cannot take -1", "odd", "13")


@case("batch.early", "batch")
def _(t):
    """A function that refuses the first vector: the client hears of it while it still holds its stream open (B013)."""
    box = queue.Queue()
    box.put(mp.FeatureVector(id="a", features=[1]))
    call = t.mod.BatchPredict.future(iter(box.get, None), timeout=10, metadata=t.md("strict"))
    start = time.time()
    try:
        refused(lambda: call.result(), SC.OUT_OF_RANGE, "a", "0")
        check(time.time() - start < 3, "it took %.1f s" % (time.time() - start))
    finally:
        box.put(None)


@case("batch.wrong-count", "batch")
def _(t):
    """A batch handler that answers too few: INTERNAL saying both numbers, as single calls too (B085)."""
    refused(lambda: batch(t, "short", vectors([[1], [2]])), SC.INTERNAL, "2", "1")
    refused(lambda: t.v1("short", [1]), SC.INTERNAL, "1", "0")
    refused(lambda: batch(t, "boom", vectors([[1]])), SC.INTERNAL)


@case("batch.ids", "batch")
def _(t):
    """Ids may repeat, be empty, or be anything."""
    vs = [mp.FeatureVector(id=i, features=[1]) for i in ("a", "a", "", "", "__proto__", "\U0001f600", "x" * 10_000)]
    check(batch(t, "sum", vs).total_processed == 7, "total")


@case("batch.values", "batch")
def _(t):
    """NaN, infinity, no features and 100,000 of them; packed, unpacked and split."""
    r = batch(t, "sum", vectors([[np.nan], [np.inf, 1], [], [0.5] * 100_000]))
    got = [x.output_tensor[0] for x in r.results]
    check(np.isnan(got[0]) and got[1:] == [np.inf, 0, 50_000], "%s" % got)
    bodies = [ld(1, "a") + packf(2, [1, 2]), f32(2, 1) + f32(2, 2) + ld(1, "b"), packf(2, [1]) + ld(9, "?") + packf(2, [2]), packf(2, [])]
    r = h2_call(t, MOD + "BatchPredict", bodies, [("model-id", "sum")])
    out = mp.BatchResult.FromString(r["data"][5:])
    check(r["status"] == 0 and [x.output_tensor[0] for x in out.results] == [3, 3, 3, 0], "%s" % r)


@case("batch.params", "batch")
def _(t):
    """param-<name> metadata supplies params: undeclared ones are refused by name, in any case of letters gRPC allows."""
    refused(lambda: batch(t, "grid", vectors([[1] * 4]), md=(("param-nope", "1"),)), INVALID, "nope")
    refused(lambda: batch(t, "grid", vectors([[1] * 4]), md=(("param-factor", "abc"),)), INVALID, "factor")
    r = batch(t, "grid", vectors([[1] * 4, [2] * 4]), md=(("param-factor", "3"),))
    check([list(x.output_tensor) for x in r.results] == [[3] * 4, [6] * 4], "%s" % r)
    r = batch(t, "grid", vectors([[1] * 8]), md=(("param-output", "dims"),))
    check([list(x.output_tensor) for x in r.results] == [[2, 4]], "param-output: %s" % r)


@case("batch.garbage", "batch")
def _(t):
    """A vector that is no protobuf, in the middle of the stream: INVALID_ARGUMENT."""
    good = ld(1, "a") + packf(2, [1])
    for bad in (b"\xff\xff", ld(2, b"123"), ld(1, b"x")[:-1] + b"", b"\x12\x08abcd"):
        r = h2_call(t, MOD + "BatchPredict", [good, bad, good], [("model-id", "sum")])
        check(r["status"] == 3, "%s: %s" % (bad.hex(), r))


@case("batch.cancel", "batch")
def _(t):
    """50 batches cancelled in the middle; the next is whole."""
    for _ in range(50):
        box = queue.Queue()
        for i in range(20):
            box.put(mp.FeatureVector(features=[i]))
        call = t.mod.BatchPredict.future(iter(box.get, None), timeout=10, metadata=t.md("sum"))
        call.cancel()
        box.put(None)
    check(batch(t, "sum", vectors([[1]] * 100)).total_processed == 100, "total")


@case("batch.flow", "batch")
def _(t):
    """A flooding client has to wait while the function is busy, and the server's memory stays level."""
    before = t.rss_mb()
    message = frame(0, ld(1, "v") + packf(2, [1.0] * 16_000))  # 64 KB
    c = H2(t, timeout=2)
    sent = 0
    try:
        c.headers(1, MOD + "BatchPredict", [("model-id", "gate")])
        pending = b""
        while sent < 200 << 20:
            pending = pending or message
            n = min(len(pending), 16_384, c.win, c.streamwin[1])
            if n <= 0:
                had = (c.win, c.streamwin[1])
                c.pump(1.0, lambda: min(c.win, c.streamwin[1]) > 0)
                if (c.win, c.streamwin[1]) == had:
                    break  # a second without a window: the client is held
                continue
            c.data(1, pending[:n])
            pending, sent = pending[n:], sent + n
            c.win -= n
            c.streamwin[1] -= n
        check(sent < 32 << 20, "the server took %d MB for a function that takes nothing" % (sent >> 20))
        check(list(t.v1("affine", [1]).output_tensor) == [12], "another call meanwhile")
        if before:
            check(t.rss_mb() - before < 150, "RSS grew from %d to %d MB" % (before, t.rss_mb()))
        c.rst(1)
    finally:
        c.close()


@case("batch.flow-many", "batch")
def _(t):
    """The same with 300 MB of vectors to a function that does take them: all answered, memory level."""
    before = t.rss_mb()
    row = np.ones(16_000, np.float32).tobytes()
    body = ld(1, "v") + ld(2, row)
    call = t.ch.stream_unary(MOD + "BatchPredict", request_serializer=None, response_deserializer=mp.BatchResult.FromString)
    r = call((body for _ in range(4700)), timeout=120, metadata=t.md("sum"))
    check(r.total_processed == 4700 and all(x.output_tensor[0] == 16_000 for x in r.results), "total %d" % r.total_processed)
    if before:
        check(t.rss_mb() - before < 400, "RSS grew from %d to %d MB" % (before, t.rss_mb()))


@case("batch.limit", "batch")
def _(t):
    """A result over the message limit: RESOURCE_EXHAUSTED naming it."""
    count = (t.max_mb << 20) // 4 // 3
    refused(lambda: batch(t, "grow", vectors([[count]] * 4), timeout=60), SC.RESOURCE_EXHAUSTED, (str(t.max_mb << 20), "%d MiB" % t.max_mb))


@case("batch.deadline", "deadline")
def _(t):
    """A deadline ends a batch whose client goes quiet: status 4, though the stream stays open."""
    c, sid = h2_open(t, MOD + "BatchPredict", [ld(1, "a") + packf(2, [1])], [("model-id", "sum"), ("grpc-timeout", "300m")], end=False)
    try:
        r = c.wait(sid, 3)
        check(r["how"] in ("ended", "reset") and (r["status"] == 4 or r["how"] == "reset") and r["secs"] < 1.5, "%s" % r)
    finally:
        c.close()


@case("batch.parallel", "batch")
def _(t):
    """40 batches at once, each with its own answers; gzip among them."""
    def one(i):
        r = batch(t, "sum", vectors([i, j] for j in range(50 + i)), compression=grpc.Compression.Gzip if i % 2 else grpc.Compression.NoCompression)
        check([x.output_tensor[0] for x in r.results] == [i + j for j in range(50 + i)], "batch %d is mixed up" % i)
    for r in parallel([lambda i=i: one(i) for i in range(40)], 20):
        if isinstance(r, BaseException):
            raise r
