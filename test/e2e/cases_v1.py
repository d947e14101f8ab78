"""How functions are named, and inference.v1.ModelInference/Predict."""
import grpc
import numpy as np

from caselib import MOD, SC, arr, call_error, case, check, expect, f32, frame, h2_unary, ld, mp, packf, tag, tensor, varint, vi
from cases_tensor import every_cut
from helpers import INVALID, refused


def v1raw(t, body):
    return list(mp.PredictResponse.FromString(t.raw(MOD + "Predict", body)).output_tensor)


# ---------------------------------------------------------------- names
@case("name.version", "naming")
def _(t):
    """name@version picks the version, model_version says which answered."""
    for version in ("1", "2"):
        r = t.v1("versioned@" + version)
        check(list(r.output_tensor) == [float(version)] and r.model_version == version, "versioned@%s: %s" % (version, r))
        check(arr(t.predict("versioned@" + version).outputs[0])[0] == float(version), "InferenceService, versioned@" + version)
    r = t.v1("versioned")
    check(r.model_version in ("1", "2") and list(r.output_tensor) == [float(r.model_version)], "versioned: %s" % r)
    r = t.v1("affine@1", [1])
    check(list(r.output_tensor) == [12] and r.model_version == "1", "affine@1: %s" % r)


@case("name.unknown-version", "naming")
def _(t):
    """An unknown version of a known name says which of the two is unknown (B110)."""
    for call in (lambda n: t.v1(n, [1]), lambda n: t.predict(n, tensor(np.ones(1)))):
        refused(lambda: call("affine@9"), SC.NOT_FOUND, "affine", "9", "version")
        refused(lambda: call("versioned@3"), SC.NOT_FOUND, "versioned", "3", "version")


@case("name.unknown", "naming")
def _(t):
    """Unknown names are NOT_FOUND with the nearest known ones, on every RPC."""
    for sent, near in (("afine", "affine"), ("affin", "affine"), ("Affine", "affine"), ("ecko", "echo"), ("countr", "counter")):
        refused(lambda: t.v1(sent, [1]), SC.NOT_FOUND, sent, near, what=sent)
    refused(lambda: list(t.tokens("cuonter")), SC.NOT_FOUND, "cuonter", "counter")
    refused(lambda: t.mod.BatchPredict(iter([mp.FeatureVector(features=[1])]), timeout=5, metadata=t.md("sun")), SC.NOT_FOUND, "sun", "sum")
    refused(lambda: list(t.mod.ChatStream(iter([mp.UserMessage(content="x")]), timeout=5, metadata=t.md("parot"))), SC.NOT_FOUND, "parot", "parrot")


@case("name.odd", "naming")
def _(t):
    """Names out of JavaScript's prototype, paths, versions of nothing, control characters: NOT_FOUND or INVALID_ARGUMENT, and nothing is read or changed."""
    for name in ("__proto__", "constructor", "toString", "hasOwnProperty", "valueOf", "affine@__proto__", "affine@constructor", "../functions/affine", "./affine",
                 "affine.ts", "_delay", "/etc/passwd", "affine/", "affine@", "@1", "@", "affine@1@2", " affine", "affine ", "affine\0", "\0", "\r\n", "a%00b",
                 "affine@ 1", "\U0001f600", "\u202eaffine", "file:///etc/passwd", "http://localhost/x.ts", "data:text/javascript,1"):
        expect(lambda: t.v1(name, [1]), (SC.NOT_FOUND, INVALID), what=repr(name))
        expect(lambda: t.predict(name, tensor(np.ones(1))), (SC.NOT_FOUND, INVALID), what=repr(name))
    check(list(t.v1("affine", [1]).output_tensor) == [12], "affine answers otherwise afterwards")


@case("name.cut", "naming")
def _(t):
    """A long name is cut to 100 characters in the message, and the code survives."""
    d = refused(lambda: t.v1("x" * 100, [1]), SC.NOT_FOUND, "x" * 100)
    for n in (101, 5000, 1_000_000):
        d = refused(lambda: t.v1("x" * n, [1]), SC.NOT_FOUND, "x" * 95)
        check("x" * 101 not in d, "more than 100 characters of the name are in the message")
    d = refused(lambda: t.v1("\U0001f600" * 60 + "y" * 100, [1]), SC.NOT_FOUND, "\U0001f600" * 40)
    check("\ufffd" not in d and len(d) < 1000, "a character was cut in two: %r" % d[:200])
    refused(lambda: t.predict("x" * 200_000), SC.NOT_FOUND, "xxx")
    refused(lambda: t.v1("affine@" + "9" * 200_000, [1]), SC.NOT_FOUND, "affine")


@case("name.empty", "naming")
def _(t):
    """An empty name where several functions can answer: INVALID_ARGUMENT listing those that can, and no others."""
    for call in (lambda: t.v1("", [1]), lambda: t.predict("", tensor(np.ones(1)))):
        d = refused(call, INVALID, "affine", "echo", "slow")
        check("parrot" not in d and "counter" not in d, "functions that cannot answer are listed: %r" % d)
    d = refused(lambda: list(t.tokens("")), INVALID, "counter", "endless")
    check("parrot" not in d, "a chat function is listed for StreamPredict: %r" % d)
    d = refused(lambda: t.mod.BatchPredict(iter([mp.FeatureVector(features=[1])]), timeout=5), INVALID, "sum", "model-id")
    check("parrot" not in d and "counter" not in d, "functions that cannot answer are listed: %r" % d)
    d = refused(lambda: list(t.mod.ChatStream(iter([mp.UserMessage(content="x")]), timeout=5)), INVALID, "parrot", "talker", "model-id")
    check("affine" not in d, "a function without chat is listed: %r" % d)
    refused(lambda: t.mod.BatchPredict(iter([mp.FeatureVector(features=[1])]), timeout=5, metadata=t.md("")), INVALID, "sum")


@case("name.handler", "naming")
def _(t):
    """A function without the handler and without a fallback: UNIMPLEMENTED naming both; the fallbacks answer."""
    refused(lambda: t.v1("parrot", [1]), SC.UNIMPLEMENTED, "parrot", "predict")
    refused(lambda: t.predict("counter"), SC.UNIMPLEMENTED, "counter", "predict")
    refused(lambda: list(t.tokens("parrot")), SC.UNIMPLEMENTED, "parrot", "stream")
    refused(lambda: t.mod.BatchPredict(iter([mp.FeatureVector(features=[1])]), timeout=5, metadata=t.md("counter")), SC.UNIMPLEMENTED, "counter", "batch")
    refused(lambda: list(t.mod.ChatStream(iter([mp.UserMessage(content="x")]), timeout=5, metadata=t.md("affine"))), SC.UNIMPLEMENTED, "affine", "chat")
    check(list(t.v1("sum", [1, 2]).output_tensor) == [3], "predict falls back to batch")
    r = t.mod.BatchPredict(iter([mp.FeatureVector(features=[1, 2, 3])] * 40), timeout=5, metadata=t.md("rows"))
    check(r.total_processed == 40 and all(list(x.output_tensor) == [2, 3, 4] for x in r.results), "batch falls back to predict")


@case("name.method", "naming")
def _(t):
    """Unknown methods and services: UNIMPLEMENTED."""
    for path in ("/inference.v1.ModelInference/Nope", "/inference.InferenceService/predict", "/nope.Nope/Predict", "/", "//", "/a", "/inference.InferenceService/"):
        r = h2_unary(t, path, frame(0, b""))
        check(r["how"] in ("ended", "reset") and r["status"] not in (0, None) or r["how"] == "reset", "%s: %s" % (path, r))


# ---------------------------------------------------------------- shapes, params, outputs
@case("v1.declared", "v1")
def _(t):
    """A declared shape with one unknown dim is filled in; what does not fit is INVALID_ARGUMENT with both numbers."""
    check(list(t.v1("grid", range(8)).output_tensor) == [2 * i for i in range(8)], "values")
    check(list(t.v1("grid", range(8), {"output": "dims"}).output_tensor) == [2, 4], "dims")
    check(list(t.v1("grid", [], {"output": "dims"}).output_tensor) == [0, 4], "an empty tensor")
    refused(lambda: t.v1("grid", range(7)), INVALID, "7", "4")


@case("v1.shape", "v1")
def _(t):
    """params["shape"] reshapes explicitly, on typed and untyped functions; nonsense in it is INVALID_ARGUMENT naming it."""
    check(list(t.v1("shapeof", range(24), {"shape": "1,2,3,4"}).output_tensor) == [1, 2, 3, 4], "1,2,3,4")
    check(list(t.v1("shapeof", [0] * 150528, {"shape": "1,224,224,3"}).output_tensor) == [1, 224, 224, 3], "1,224,224,3")
    check(list(t.v1("shapeof", range(24), {"shape": "4, 6"}).output_tensor) == [4, 6], "with a space")
    check(list(t.v1("shapeof", range(3)).output_tensor) == [3], "flat without it")
    check(list(t.v1("shapeof", [], {"shape": "0,5"}).output_tensor) == [0, 5], "0,5")
    check(list(t.v1("grid", range(8), {"shape": "2,4", "output": "dims"}).output_tensor) == [2, 4], "typed")
    for shape in ("5,5", "2,x", "2,,3", "1e1,2", "-2,-12", "99999999999,4", "2.5,4", "0x18", "4294967297,24", "NaN", "24,\U0001f600", "2;12", "Infinity", "9007199254740993,24"):
        refused(lambda: t.v1("shapeof", range(24), {"shape": shape}), INVALID, "shape", what=shape)
    refused(lambda: t.v1("grid", range(8), {"shape": "4,2"}), INVALID, "4", "2")
    refused(lambda: t.v1("grid", range(8), {"shape": "8"}), INVALID, "cells")
    code, r = call_error(lambda: t.v1("shapeof", [1], {"shape": ",".join(["1"] * 5000)}))
    check(code in (SC.OK, INVALID), "5000 dims: %s %r" % (code.name, r))


@case("v1.output", "v1")
def _(t):
    """params["output"] picks by name; an unknown name lists the names; strings are FAILED_PRECONDITION with a way out."""
    check(list(t.v1("grid", range(4)).output_tensor) == [0, 2, 4, 6], "the first output by default")
    check(list(t.v1("grid", range(4), {"output": "scaled"}).output_tensor) == [0, 2, 4, 6], "by name")
    refused(lambda: t.v1("grid", range(4), {"output": "nope"}), INVALID, "nope", "scaled", "dims")
    refused(lambda: t.v1("grid", range(4), {"output": "__proto__"}), INVALID, "__proto__")
    refused(lambda: t.v1("words"), SC.FAILED_PRECONDITION, "InferenceService")
    refused(lambda: t.v1("facts", params={"output": "request_id"}), SC.FAILED_PRECONDITION, "InferenceService")


@case("v1.numbers", "v1")
def _(t):
    """int64 beyond 2**24 becomes the nearest float; NaN and infinities pass; bool becomes 0 and 1."""
    got = list(t.v1("facts", params={"output": "big"}).output_tensor)
    check(got == [float(np.float32(16777217)), float(np.float32(-9007199254740993))], "got %s" % got)
    got = np.array(t.v1("echo", [np.nan, np.inf, -np.inf, -0.0, 1e-45]).output_tensor, np.float32)
    check(np.isnan(got[0]) and list(got[1:3]) == [np.inf, -np.inf] and np.signbit(got[3]) and got[4] == np.float32(1e-45), "got %s" % got)


@case("v1.params", "v1")
def _(t):
    """Typed params: coerced, checked, undeclared ones refused by name; reserved names never reach the handler."""
    check(list(t.v1("grid", [1] * 4, {"factor": "3"}).output_tensor) == [3] * 4, "an integer")
    for text, sign in (("true", -1), ("1", -1), ("false", 1), ("0", 1)):
        check(list(t.v1("grid", [1] * 4, {"negate": text}).output_tensor) == [2 * sign] * 4, "negate " + text)
    for key, bad in (("factor", "abc"), ("factor", "2.5"), ("factor", "0"), ("factor", "11"), ("factor", ""), ("factor", "1e1"), ("factor", "0x3"), ("factor", "NaN"),
                     ("factor", " "), ("negate", "maybe"), ("negate", "yes"), ("negate", ""), ("negate", "TRUE!"), ("mode", "slow"), ("mode", "__proto__"), ("mode", "")):
        refused(lambda: t.v1("grid", [1] * 4, {key: bad}), INVALID, key, what="%s=%r" % (key, bad))
    refused(lambda: t.v1("grid", [1] * 4, {"mode": "slow"}), INVALID, "mode", "fast", "exact")
    for key in ("factr", "__proto__", "constructor", "toString", "", "k" * 500):
        refused(lambda: t.v1("grid", [1] * 4, {key: "1"}), INVALID, key[:90], what=key[:20])
    check(v1raw(t, ld(1, "grid") + packf(2, [1] * 4) + ld(3, ld(1, "factor") + ld(2, "3")) + ld(3, ld(1, "factor") + ld(2, "5"))) == [5] * 4, "a key twice: the last wins")


@case("v1.untyped-params", "v1")
def _(t):
    """Without declared params a handler gets whatever strings came, __proto__ among them, and never the reserved names."""
    r = t.v1("affine", [1], {"__proto__": "x", "constructor": "y", "": "z", "\U0001f600": "u"})
    check(list(r.output_tensor) == [12], "got %s" % r)


@case("v1.map-entries", "v1")
def _(t):
    """Map entries without key or value, with unknown fields, value before key: as protobuf reads them."""
    for entry in (ld(2, "3") + ld(1, "factor"), ld(1, "x") + ld(1, "factor") + ld(2, "3"), ld(1, "factor") + ld(7, "?") + ld(2, "3") + vi(9, 1)):
        check(v1raw(t, ld(1, "grid") + packf(2, [1] * 4) + ld(3, entry)) == [3] * 4, "entry %s" % entry.hex())
    refused(lambda: t.raw(MOD + "Predict", ld(1, "grid") + packf(2, [1] * 4) + ld(3, ld(1, "factor"))), INVALID, "factor")
    check(v1raw(t, ld(1, "affine") + packf(2, [1]) + ld(3, b"")) == [12], "an empty entry")


@case("v1.max-tokens", "v1")
def _(t):
    """max_tokens reaches a predict handler; 0 means that none was given."""
    for n, want in ((0, -1), (7, 7), (2**32 - 1, 2**32 - 1)):
        got = t.v1("facts", n=n).output_tensor[0]
        check(got == np.float32(want), "max_tokens %d arrived as %s" % (n, got))


@case("v1.answer", "v1")
def _(t):
    """latency_ms is fractional and as long as the handler took; model_version is set; output is packed."""
    r = t.v1("slow", [1, 2], {"delay_ms": "300"})
    check(295 <= r.latency_ms < 1500 and r.model_version == "1" and list(r.output_tensor) == [1, 2], "%s" % r)
    some = [t.v1("affine", [1]).latency_ms for _ in range(10)]
    check(all(0 <= x < 1000 for x in some) and any(x != int(x) for x in some), "latencies %s" % some)


# ---------------------------------------------------------------- encodings
@case("v1.packed", "v1")
def _(t):
    """Packed, unpacked, split and mixed input_tensor, before and after the name, with unknown fields between."""
    want = [12, 14, 16, 18]
    for what, body in (("packed", ld(1, "affine") + packf(2, [1, 2, 3, 4])), ("unpacked", ld(1, "affine") + b"".join(f32(2, i) for i in (1, 2, 3, 4))),
                       ("split", packf(2, [1, 2]) + ld(1, "affine") + packf(2, [3, 4])), ("mixed", f32(2, 1) + packf(2, [2, 3]) + ld(1, "affine") + f32(2, 4)),
                       ("with empty parts", packf(2, []) + packf(2, [1]) + ld(1, "affine") + packf(2, []) + packf(2, [2, 3, 4])),
                       ("with unknown fields", ld(15, b"abc") + packf(2, [1, 2]) + vi(16, 5) + ld(1, "affine") + packf(2, [3, 4]) + tag(17, 1) + b"8 bytes!")):
        check(v1raw(t, body) == want, "%s: %s" % (what, v1raw(t, body)))
    for n in (255, 256, 257, 1023, 50_000):  # a fast decoder may take over at some size
        for pad in range(5):
            xs = np.arange(n, dtype=np.float32)
            got = v1raw(t, ld(15, b"p" * pad) + ld(1, "affine") + packf(2, list(xs[:-1])) + f32(2, xs[-1]) + ld(3, ld(1, "k") + ld(2, "v")))
            check(np.array_equal(got, xs * 2 + 10), "%d floats after %d bytes" % (n, pad))


@case("v1.cut", "v1")
def _(t):
    """A request cut short at every byte: INVALID_ARGUMENT, or OK where what is left is a whole message."""
    every_cut(t, MOD + "Predict", ld(1, "echo") + packf(2, [1, 2, 3]) + f32(2, 4) + ld(3, ld(1, "key") + ld(2, "value")) + vi(4, 300), INVALID)


@case("v1.cut-large", "v1")
def _(t):
    """The same around the ends of a large packed tensor, where a fast decoder is at work."""
    body = ld(1, "echo") + packf(2, [1.0] * 20_000) + ld(3, ld(1, "key") + ld(2, "value"))
    ends = (6, len(body) - 14, len(body))
    for n in list(range(1, 20)) + list(range(20_000, 20_008)) + list(range(len(body) - 24, len(body) + 1)):
        code, r = call_error(lambda: t.raw(MOD + "Predict", body[:n]))
        want = SC.OK if n in ends else INVALID
        check(code is want, "cut after %d of %d: got %s, want %s" % (n, len(body), code.name, want.name))


@case("v1.garbage", "v1")
def _(t):
    """Packed lengths that are no multiple of 4, entries and lengths past their end: INVALID_ARGUMENT."""
    for what, body in (("5 packed bytes", ld(1, "affine") + ld(2, b"12345")), ("length past the end", ld(1, "affine") + tag(2, 2) + varint(4000) + b"1234"),
                       ("2**31 length", ld(1, "affine") + tag(2, 2) + varint(2**31)), ("2**64-1 length", ld(1, "affine") + tag(2, 2) + varint(2**64 - 1)),
                       ("key past its entry", ld(1, "affine") + ld(3, tag(1, 2) + varint(50) + b"abc") + ld(15, b"x" * 100)),
                       ("value past its entry", ld(1, "affine") + ld(3, ld(1, "a") + tag(2, 2) + varint(9) + b"abc") + ld(15, b"x" * 100)),
                       ("cut varint", ld(1, "affine") + tag(4, 0) + b"\xff"), ("large and odd", ld(1, "affine") + ld(2, b"x" * 40_001))):
        refused(lambda: t.raw(MOD + "Predict", body), INVALID, what=what)
    for what, body in (("max_tokens as bytes", ld(1, "affine") + packf(2, [1]) + ld(4, b"12")), ("model_id as varint", vi(1, 3) + ld(1, "affine") + packf(2, [1])),
                       ("input as varint", ld(1, "affine") + vi(2, 7) + packf(2, [1])), ("params as float", ld(1, "affine") + f32(3, 1) + packf(2, [1])),
                       ("max_tokens of 64 bits", ld(1, "affine") + packf(2, [1]) + vi(4, 2**64 - 1))):
        code, r = call_error(lambda: t.raw(MOD + "Predict", body))
        check(code in (SC.OK, INVALID), "%s: %s %r" % (what, code.name, r))


@case("v1.large", "v1")
def _(t):
    """4 million floats there and back; just over the limit is RESOURCE_EXHAUSTED naming it."""
    xs = np.arange(4_000_000, dtype=np.float32)
    r = mp.PredictResponse.FromString(t.raw(MOD + "Predict", ld(1, "affine") + ld(2, xs.tobytes()), timeout=60))
    check(np.array_equal(np.array(r.output_tensor, np.float32), xs * 2 + 10), "values changed")
    over = ld(1, "affine") + ld(2, b"\0" * ((t.max_mb << 20)))
    refused(lambda: t.raw(MOD + "Predict", over, timeout=60), SC.RESOURCE_EXHAUSTED, (str(t.max_mb << 20), "%d MiB" % t.max_mb))


@case("v1.empty", "v1")
def _(t):
    """No input at all is an empty tensor."""
    check(list(t.v1("affine").output_tensor) == [], "affine of nothing")


@case("v1.metadata", "v1")
def _(t):
    """Odd metadata: binary, unicode in -bin, empty values, a hundred keys; the call works and request-id is echoed."""
    for md in ((("x-bin", b"\0\xff\x80"),), (("x-empty", ""),), tuple(("x-%d" % i, "v") for i in range(100)), (("x-a", "1"), ("x-a", "2"))):
        check(list(t.mod.Predict(mp.PredictRequest(model_id="affine", input_tensor=[1]), timeout=5, metadata=md).output_tensor) == [12], "metadata %s" % (md[:1],))
    r, call = t.mod.Predict.with_call(mp.PredictRequest(model_id="affine", input_tensor=[1]), timeout=5, metadata=(("request-id", "my-id"),))
    seen = list(call.initial_metadata()) + list(call.trailing_metadata())
    check(("request-id", "my-id") in seen, "no request-id in %s" % seen)
    r, call = t.mod.Predict.with_call(mp.PredictRequest(model_id="affine", input_tensor=[1]), timeout=5)
    seen = dict(list(call.initial_metadata()) + list(call.trailing_metadata()))
    check(seen.get("request-id"), "the server made no request-id: %s" % seen)


@case("v1.request-id", "v1")
def _(t):
    """A request-id that is long, odd, or came twice: the call works or is refused cleanly, and errors keep their code."""
    for rid in ("x" * 200, "x" * 5000, "a b", "%00", "", "../..", "__proto__"):
        md = (("request-id", rid),)
        code, r = call_error(lambda: t.mod.Predict(mp.PredictRequest(model_id="affine", input_tensor=[1]), timeout=5, metadata=md))
        check(code in (SC.OK, INVALID), "%r: %s %r" % (rid[:20], code.name, r))
        code, d = call_error(lambda: t.mod.Predict(mp.PredictRequest(model_id="boom"), timeout=5, metadata=md))
        check(code in (SC.INTERNAL, INVALID) and "secret" not in d, "boom with %r: %s %r" % (rid[:20], code.name, d[:100]))
    check(list(t.mod.Predict(mp.PredictRequest(model_id="affine", input_tensor=[1]), timeout=5, metadata=(("request-id", "a"), ("request-id", "b"))).output_tensor) == [12], "twice")


@case("v1.compressed", "v1")
def _(t):
    """All four modes with gzip requests from a client that accepts every encoding."""
    gz = grpc.Compression.Gzip
    check(list(t.mod.Predict(mp.PredictRequest(model_id="affine", input_tensor=[1] * 1000), timeout=5, compression=gz).output_tensor) == [12] * 1000, "Predict")
    check(len(list(t.mod.StreamPredict(mp.PredictRequest(model_id="counter", max_tokens=50, params={"delay_ms": "0"}), timeout=5, compression=gz))) == 50, "StreamPredict")
    r = t.mod.BatchPredict((mp.FeatureVector(id="i" * 300, features=[1] * 100) for _ in range(50)), timeout=5, compression=gz, metadata=t.md("sum"))
    check([list(x.output_tensor) for x in r.results] == [[100]] * 50, "BatchPredict")
    text = "long " * 100
    r = list(t.mod.ChatStream(iter([mp.UserMessage(content=text)]), timeout=5, compression=gz, metadata=t.md("parrot")))
    check("".join(p.content for p in r) == "1: " + text, "ChatStream")
