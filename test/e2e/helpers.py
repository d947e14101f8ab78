"""What the contract's cases share beside caselib.py, which is kept as it was given."""
import time

from caselib import H2, LEAKS, SC, check, expect, frame, ip, mp

INVALID = SC.INVALID_ARGUMENT


def refused(fn, code, *needles, what="call"):
    """fn fails with this one status, says every needle, and leaks nothing of the server's inside."""
    return expect(fn, (code,), needles, LEAKS, what)


def until(fn, secs, what):
    """Asks again until fn gives something true: for what the server offers no event to wait for."""
    stop = time.time() + secs
    while True:
        got = fn()
        if got:
            return got
        check(time.time() < stop, "%s: not within %.1f s" % (what, secs))
        time.sleep(0.02)


def unique(prefix):
    unique.count += 1
    return "%s-%d-%d" % (prefix, time.time_ns(), unique.count)


unique.count = 0


def report(t, model, key):
    """What the fixtures "watched" and "talker" remember of a call or a session."""
    return [int(v) for v in t.v1(model, params={"key": key}).output_tensor]


def send(c, sid, data, end=True, secs=10):
    """DATA within the server's windows, on as soon as they open."""
    while data or end:
        n = min(len(data), 16_384, c.win, c.streamwin[sid])
        if n <= 0 and data:
            c.pump(secs, lambda: min(c.win, c.streamwin[sid]) > 0)
            check(min(c.win, c.streamwin[sid]) > 0, "the server gave no window in %d s" % secs)
            continue
        c.data(sid, data[:n], end and n == len(data))
        data = data[n:]
        c.win -= n
        c.streamwin[sid] -= n
        if not data:
            return


def h2_open(t, path, messages, extra=(), end=True, **kw):
    """One raw call on a connection of its own: (connection, stream id)."""
    c = H2(t, **kw)
    c.headers(1, path, extra)
    body = b"".join(frame(0, m) for m in messages)
    send(c, 1, body, end)
    return c, 1


def h2_call(t, path, messages, extra=(), wait=5, **kw):
    """One raw call of plain messages to its end."""
    c, sid = h2_open(t, path, messages, extra, **kw)
    try:
        return c.wait(sid, wait)
    finally:
        c.close()


def messages_of(data):
    """The gRPC messages in what a raw stream received."""
    out = []
    while len(data) >= 5:
        n = int.from_bytes(data[1:5], "big")
        out.append(data[5:5 + n])
        data = data[5 + n:]
    return out


def predict_bytes(model, *tensors):
    return ip.InferenceRequest(model_name=model, inputs=tensors).SerializeToString()


def request_bytes(model, **kw):
    return mp.PredictRequest(model_id=model, **kw).SerializeToString()
