"""Tensors over inference.InferenceService/Predict."""
import gzip
import zlib

import grpc
import numpy as np

from caselib import INF, SC, H2, arr, call_error, case, check, expect, frame, h2_unary, ip, ld, parallel, tag, tensor, varint, vi, want_affine
from helpers import INVALID, predict_bytes, refused, send

NUMBERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")


def echo(t, td, model="echo"):
    return t.predict(model, td).outputs[0]


def same(t, a, dtype=None, name=None):
    """echo gives the array back, under a name that np.dtype() takes."""
    a = np.asarray(a)
    o = echo(t, tensor(a, dtype))
    native = a.astype(a.dtype.newbyteorder("="))
    check(list(o.shape) == list(a.shape), "%s: shape %s came, %s was sent" % (dtype or a.dtype, list(o.shape), list(a.shape)))
    check(np.dtype(o.dtype) == native.dtype, "%s: reply dtype %r" % (dtype or a.dtype, o.dtype))
    check(o.data == native.tobytes(), "%s: bytes changed: %s -> %s" % (dtype or a.dtype, native.tobytes()[:32].hex(), o.data[:32].hex()))
    if name:
        check(o.dtype == name, "reply dtype is %r, %r was expected" % (o.dtype, name))


def affine(t, x, dtype=None):
    x = np.asarray(x)
    o, want = t.predict("affine", tensor(x, dtype)).outputs[0], want_affine(x)
    got = arr(o)
    check(list(o.shape) == list(x.shape) and got.dtype == want.dtype and np.array_equal(got, want),
          "%s: %s gave %s %s, want %s" % (dtype or x.dtype, x.tolist(), o.dtype, got.tolist(), want.tolist()))


# ---------------------------------------------------------------- dtypes
@case("dtype.names", "dtype")
def _(t):
    """Every numeric name, in any case, comes back as itself and as that plain name."""
    for name in NUMBERS:
        a = np.array([[0, 1, 1], [1, 0, 1]], dtype=name)
        for sent in (name, name.upper(), name.capitalize()):
            same(t, a, sent, name)


@case("dtype.alias", "dtype")
def _(t):
    """The array-protocol codes are aliases; the reply has the plain name."""
    for code in ("<f4", "|u1", "f8", "?", "|b1", "b1", "|i1", "i1", "u1", "<i2", "i2", "=i4", "<i4", "<i8", "<u2", "<u4", "<u8", "<f2", "f2", "=f4", "<f8"):
        a = np.array([0, 1, 1], dtype=np.dtype(code))
        same(t, a, code, a.dtype.name)


@case("dtype.bigendian", "dtype")
def _(t):
    """Big-endian codes are swapped on the way in, for every width and for bfloat16's neighbours."""
    for code in (">i2", ">u2", ">f2", ">i4", ">u4", ">f4", ">i8", ">u8", ">f8"):
        a = np.array([[1, 2, 3], [4, 5, 100]], dtype=code)
        same(t, a, code, a.dtype.newbyteorder("=").name)
        affine(t, a, code)
    same(t, np.array([2**63 + 5, 1], dtype=">u8"), ">u8")
    same(t, np.array(["a\U0001f600", "b"], dtype=">U2"), ">U2")


@case("dtype.affine", "dtype")
def _(t):
    """affine keeps each numeric dtype and is exact, 64-bit integers beyond 2**53 included."""
    for name in NUMBERS[1:]:
        affine(t, np.array([0, 1, 2, 50], dtype=name))
        affine(t, np.array([], dtype=name))
    affine(t, np.array([-(2**62), 2**62 - 7, 2**53 + 1], dtype=np.int64))
    affine(t, np.array([2**62 + 1, 2**63 - 10], dtype=np.uint64))


@case("dtype.int64", "dtype")
def _(t):
    """The ends of int64 and uint64 pass unchanged."""
    same(t, np.array([-(2**63), 2**63 - 1, 0, -1], dtype=np.int64))
    same(t, np.array([2**64 - 1, 2**63, 0], dtype=np.uint64))


@case("dtype.special", "dtype")
def _(t):
    """NaN (its payload too), infinities, -0 and subnormals pass bit for bit."""
    for name, bits in (("float16", "u2"), ("float32", "u4"), ("float64", "u8")):
        info = np.finfo(name)
        tiny = np.array([1, 2], dtype=bits).view(name)
        nan = (np.array([np.inf], dtype=name).view(bits) | np.array([0x123 & ((1 << info.nmant) - 1) | 1 << (info.nmant - 1)], dtype=bits)).view(name)
        a = np.concatenate([np.array([np.inf, -np.inf, -0.0, info.max, info.min, info.tiny], dtype=name), tiny, nan])
        same(t, a)
    g = arr(t.predict("affine", tensor(np.array([np.nan, np.inf, -np.inf, -0.0], dtype=np.float16))).outputs[0])
    check(np.isnan(g[0]) and np.isposinf(g[1]) and np.isneginf(g[2]) and g[3] == 10, "affine on float16 specials: %s" % g)


@case("dtype.bool", "dtype")
def _(t):
    """bool is one byte, 0 or 1: another byte is refused or read as true, never passed on."""
    code, r = call_error(lambda: t.predict("echo", ip.TensorData(data=bytes([0, 1, 2, 255]), shape=[4], dtype="bool")))
    if code is SC.OK:
        check(r.outputs[0].data == bytes([0, 1, 1, 1]), "bool bytes %s" % r.outputs[0].data.hex())
    else:
        check(code is INVALID, "got %s %r" % (code.name, r))


@case("dtype.bfloat16", "dtype")
def _(t):
    """bfloat16 passes as raw bits under its own name; its size is checked."""
    bits = np.array([0x3F80, 0x4000, 0x7FC1, 0xFF80, 0x8000, 0x0001], dtype=np.uint16)
    o = echo(t, ip.TensorData(data=bits.tobytes(), shape=[2, 3], dtype="bfloat16"))
    check(o.dtype == "bfloat16" and o.data == bits.tobytes() and list(o.shape) == [2, 3], "got %s %s" % (o.dtype, o.data.hex()))
    refused(lambda: t.predict("echo", ip.TensorData(data=b"\0" * 3, shape=[2], dtype="bfloat16")), INVALID, "bfloat16", "4", "3")


@case("dtype.unicode", "dtype")
def _(t):
    """<U strings: characters beyond the basic plane, empty strings, padding, two dims."""
    for a in (np.array(["h\u00e9llo", "", "\U0001f600\U0001f468"]), np.array([["a", "bc"], ["\u65e5\u672c", "\U0010ffff"]]),
              np.array("scalar"), np.array(["\ufeffbom", "nul\0in"]), np.zeros((0, 2), dtype="<U3")):
        o = echo(t, tensor(a))
        check(o.dtype.startswith("<U"), "reply dtype %r" % o.dtype)
        got = np.frombuffer(o.data, dtype=np.dtype(o.dtype)).reshape(tuple(o.shape)) if a.size else np.zeros(tuple(o.shape), o.dtype)
        check(list(o.shape) == list(a.shape) and np.array_equal(got, a), "%r came back as %r" % (a.tolist(), got.tolist()))


@case("dtype.bytes", "dtype")
def _(t):
    """|S strings are bytes, whatever they mean."""
    for a in (np.array([b"ab", b"", b"\xff\xfe\x80"]), np.array(b"x"), np.array([[b"a\0b", b"c"]]), np.zeros((2, 0), dtype="|S4")):
        o = echo(t, tensor(a))
        check(o.dtype.startswith("|S"), "reply dtype %r" % o.dtype)
        got = np.frombuffer(o.data, dtype=np.dtype(o.dtype)).reshape(tuple(o.shape)) if a.size else np.zeros(tuple(o.shape), o.dtype)
        check(list(o.shape) == list(a.shape) and np.array_equal(got, a), "%r came back as %r" % (a.tolist(), got.tolist()))
    same(t, np.array([b"abc", b"de"]), "S3")


@case("dtype.unicode-bad", "dtype")
def _(t):
    """Code points that do not exist, a width of 0, a monstrous width: a clean status, never INTERNAL."""
    for data, shape, dtype in ((b"\x00\x00\x11\x00", [1], "<U1"), (b"\x00\xd8\x00\x00", [1], "<U1"), (b"\xff\xff\xff\xff", [1], "<U1"),
                               (b"", [2], "<U0"), (b"", [2], "|S0"), (b"", [1], "<U99999999999999999999"), (b"abcd", [1], "<U4294967297"),
                               (b"abc", [1], "<U1")):
        code, r = call_error(lambda: t.predict("echo", ip.TensorData(data=data, shape=shape, dtype=dtype)))
        check(code in (SC.OK, INVALID), "%s: got %s %r" % (dtype, code.name, r))
        if code is SC.OK:
            np.dtype(r.outputs[0].dtype)


@case("dtype.refused", "dtype")
def _(t):
    """object, structured, complex and unknown dtypes: INVALID_ARGUMENT that names the dtype as sent and the supported ones."""
    for dtype in ("object", "O", "|O", "complex64", "complex128", "<c8", "datetime64[ns]", "<M8[ns]", "m8", "|V8", "[('a', '<f4')]",
                  "int128", "float8", "<f3", "<i3", ">", "<", "|", "|f4x", "Quux32", "float32 ", "\u0444loat", "__proto__", "constructor"):
        refused(lambda: t.predict("echo", ip.TensorData(data=b"\0" * 16, shape=[1], dtype=dtype)), INVALID, dtype, "float32", what=dtype)
    refused(lambda: t.predict("echo", ip.TensorData(data=b"\0" * 4, shape=[1], dtype="")), INVALID, "dtype", "float32")
    refused(lambda: t.predict("echo", ip.TensorData(data=b"\0" * 4, shape=[1], dtype="line\r\nbreak")), INVALID, "float32")
    d = refused(lambda: t.predict("echo", ip.TensorData(data=b"\0" * 4, shape=[1], dtype="x" * 100_000)), INVALID, "xxx")
    check(len(d) < 8000, "the message is %d characters long" % len(d))


# ---------------------------------------------------------------- shapes
@case("shape.bytes", "shape")
def _(t):
    """A wrong byte count: the message has the input, its shape and dtype, the expected and the received count."""
    for shape, dtype, got, want in (([2, 3], "float32", 20, 24), ([2, 3], "float32", 28, 24), ([], "float64", 0, 8), ([], "float32", 8, 4),
                                    ([3], "int64", 23, 24), ([0], "int8", 1, 0), ([5], "float16", 9, 10), ([2], "<U3", 23, 24), ([2], "|S3", 5, 6),
                                    ([4], ">f4", 15, 16)):
        d = refused(lambda: t.predict("echo", ip.TensorData(data=b"\0" * got, shape=shape, dtype=dtype)), INVALID, dtype, str(want), str(got),
                    what="%s %s" % (shape, dtype))
        check("[" + ",".join(map(str, shape)) + "]" in d.replace(" ", ""), "the shape %s is not in %r" % (shape, d))
    good, bad = tensor(np.ones(2, np.float32)), ip.TensorData(data=b"\0" * 7, shape=[2], dtype="float32")
    refused(lambda: t.predict("echo", good, good, bad), INVALID, "2", "7", "8")
    refused(lambda: t.predict("grid", ip.TensorData(data=b"\0" * 7, shape=[1, 4], dtype="float32")), INVALID, "cells", "16", "7")


@case("shape.negative", "shape")
def _(t):
    """Negative dims are refused, also where their product is positive or zero."""
    for shape in ([-1], [-2, -3], [2, -1], [0, -1], [-(2**31)]):
        refused(lambda: t.predict("echo", ip.TensorData(data=b"\0" * 24, shape=shape, dtype="float32")), INVALID, str(min(shape)), what=str(shape))


@case("shape.overflow", "shape")
def _(t):
    """Products beyond 2**31, 2**32, 2**53 and 2**64 do not wrap to the byte count that came."""
    big = 2**31 - 1
    for shape, size in (([65536, 65536], 0), ([big, big], 4), ([big] * 4, 4), ([big] * 40, 4), ([2**30, 2**30, 16], 0), ([65536] * 4, 0), ([3, 2**30, 2**30, 2**30], 0)):
        refused(lambda: t.predict("echo", ip.TensorData(data=b"\0" * size, shape=shape, dtype="float32")), INVALID, "float32", what=str(shape))


@case("shape.zero", "shape")
def _(t):
    """A 0 dim makes an empty tensor, beside huge dims too; the shape comes back."""
    for shape in ([0], [3, 0], [0, 0, 0], [2**31 - 1, 0], [2**31 - 1, 2**31 - 1, 0, 7]):
        for dtype in ("float32", "int64", "bool"):
            o = echo(t, ip.TensorData(data=b"", shape=shape, dtype=dtype))
            check(list(o.shape) == shape and o.data == b"" and o.dtype == dtype, "%s %s came back as %s %s" % (dtype, shape, o.dtype, list(o.shape)))


@case("shape.scalar", "shape")
def _(t):
    """Scalars of every dtype; [1] and [1, 1] stay what they are."""
    for name in NUMBERS:
        same(t, np.array(1, dtype=name))
        same(t, np.ones((1, 1), dtype=name))
    affine(t, np.int64(2**60))


@case("shape.rank", "shape")
def _(t):
    """32 dims pass; a thousand get a clean status."""
    same(t, np.ones((1,) * 32, dtype=np.float32))
    code, r = call_error(lambda: t.predict("echo", ip.TensorData(data=b"\0" * 4, shape=[1] * 1000, dtype="float32")))
    check(code in (SC.OK, INVALID), "1000 dims: %s %r" % (code.name, r))


@case("shape.alignment", "shape")
def _(t):
    """The payload is right whatever comes before it: unknown fields of 0 to 8 bytes shift it through every alignment."""
    for a in (np.arange(5, dtype=np.float64), np.arange(5, dtype=np.int64), np.arange(5, dtype=np.float32), np.arange(5, dtype=np.uint16)):
        td = tensor(a).SerializeToString()
        for pad in range(9):
            for body in (ld(15, b"p" * pad) + ld(1, "echo") + ld(2, td), ld(1, "echo") + ld(2, ld(15, b"p" * pad) + td)):
                o = ip.InferenceResponse.FromString(t.raw(INF + "Predict", body)).outputs[0]
                check(np.array_equal(arr(o), a), "%s after %d bytes: %s" % (a.dtype, pad, arr(o)))


@case("shape.many", "shape")
def _(t):
    """300 inputs of all dtypes come back in order; none is mixed up with its neighbour."""
    sent = [np.full((i % 4, 3), i % 2 if NUMBERS[i % 12] == "bool" else i % 100, dtype=NUMBERS[i % 12]) for i in range(300)]
    r = t.predict("echo", *[tensor(a) for a in sent])
    check(len(r.outputs) == 300, "%d outputs" % len(r.outputs))
    for i, (a, o) in enumerate(zip(sent, r.outputs)):
        check(o.dtype == str(a.dtype) and list(o.shape) == list(a.shape) and o.data == a.tobytes(), "output %d differs" % i)


@case("shape.empty-call", "shape")
def _(t):
    """echo without inputs answers without outputs."""
    check(len(t.predict("echo").outputs) == 0, "outputs came from nowhere")


@case("shape.parallel", "shape")
def _(t):
    """200 concurrent calls of many sizes and dtypes: each gets its own answer."""
    def one(i):
        a = np.full(1 + i * 37 % 5000, i % 100, dtype=NUMBERS[1 + i % 11])
        same(t, a)
    for r in parallel([lambda i=i: one(i) for i in range(200)], 16):
        if isinstance(r, BaseException):
            raise r


# ---------------------------------------------------------------- specs
@case("spec.inputs", "spec")
def _(t):
    """Count, rank, fixed dim and dtype against the declared specs: the input, what was expected and what came."""
    ok = tensor(np.ones((2, 4), np.float32))
    mask = tensor(np.array([True]))
    check(len(t.predict("grid", ok).outputs) == 2 and len(t.predict("grid", ok, mask).outputs) == 2, "the optional input")
    refused(lambda: t.predict("grid"), INVALID, "1", "0")
    refused(lambda: t.predict("grid", ok, mask, mask), INVALID, "2", "3")
    refused(lambda: t.predict("grid", tensor(np.ones(4, np.float32))), INVALID, "cells", "[4]", "4]")
    refused(lambda: t.predict("grid", tensor(np.ones((2, 5), np.float32))), INVALID, "cells", "4", "5")
    refused(lambda: t.predict("grid", tensor(np.ones((2, 4), np.float64))), INVALID, "cells", "float32", "float64")
    refused(lambda: t.predict("grid", ok, tensor(np.ones(2, np.uint8))), INVALID, "mask", "bool", "uint8")
    refused(lambda: t.predict("grid", tensor(np.array([["a"] * 4]))), INVALID, "cells", "float32", "<U1")
    g = arr(t.predict("grid", tensor(np.array([[1, 2, 3, 4]], dtype=">f4"))).outputs[0])
    check(np.array_equal(g, [[2, 4, 6, 8]]), "a big-endian input for a declared float32: %s" % g)
    g = t.predict("grid", tensor(np.zeros((0, 4), np.float32))).outputs
    check(list(g[0].shape) == [0, 4] and list(arr(g[1])) == [0, 4], "an empty batch: %s" % g)


@case("spec.outputs", "spec")
def _(t):
    """A handler that returns nonsense: INTERNAL without its inside, not a broken answer."""
    for kind in range(7):
        code, r = call_error(lambda: t.predict("liar", tensor(np.array([kind], np.float32))))
        check(code is SC.INTERNAL, "kind %d: %s %r" % (kind, code.name, r))
        code, r = call_error(lambda: t.v1("liar", [kind]))
        check(code is SC.INTERNAL, "v1, kind %d: %s %r" % (kind, code.name, r))


@case("answer.status", "answer")
def _(t):
    """status is "OK", latency_ms whole and as long as the handler took."""
    r = t.predict("affine", tensor(np.ones(3)))
    check(r.status == "OK" and 0 <= r.latency_ms < 1000, "status %r, latency %d" % (r.status, r.latency_ms))
    r = t.predict("slow", tensor(np.ones(3)))
    check(1990 <= r.latency_ms < 4000, "slow took 2 s, latency_ms says %d" % r.latency_ms)


# ---------------------------------------------------------------- errors of handlers
@case("error.leak", "errors")
def _(t):
    """What a handler throws never reaches the client; the message has the request id, the response metadata too."""
    for call in (lambda **k: t.inf.Predict.with_call(ip.InferenceRequest(model_name="boom"), timeout=5, **k),):
        try:
            call(metadata=(("request-id", "case-42"),))
            check(False, "boom answered")
        except grpc.RpcError as e:
            check(e.code() is SC.INTERNAL and "secret" not in e.details(), "%s %r" % (e.code().name, e.details()))
            check("case-42" in e.details(), "no request id in %r" % e.details())
            md = dict(list(e.initial_metadata() or ()) + list(e.trailing_metadata() or ()))
            check(md.get("request-id") == "case-42", "the response metadata has no request-id: %s" % md)
            check("secret" not in repr(md), "metadata leaks: %s" % md)
    d1 = refused(lambda: t.predict("boom"), SC.INTERNAL)
    d2 = refused(lambda: t.predict("boom"), SC.INTERNAL)
    check(d1 != d2, "two failures have one request id: %r" % d1)


@case("error.codes", "errors")
def _(t):
    """A ModelError's code and message reach the client, in every code."""
    for kind in ("invalid_argument", "not_found", "already_exists", "permission_denied", "resource_exhausted", "failed_precondition",
                 "aborted", "out_of_range", "unimplemented", "unavailable", "data_loss", "unauthenticated", "internal"):
        refused(lambda: t.v1("refuse", params={"kind": kind}), SC[kind.upper()], 'cannot go on: "%s"' % kind, what=kind)


@case("error.thrown", "errors")
def _(t):
    """null, undefined, a string, a TypeError and an object that throws when it is looked at: INTERNAL, neutral."""
    for kind in ("null", "undefined", "string", "hostile", "other"):
        refused(lambda: t.v1("refuse", params={"kind": kind}), SC.INTERNAL, what=kind)


@case("error.message", "errors")
def _(t):
    """A message of 200,000 characters, and one with line breaks, a lone surrogate and %, keep their code."""
    d = refused(lambda: t.v1("refuse", params={"kind": "long"}), INVALID, "xxxx")
    check(len(d) < 8192, "%d characters came" % len(d))
    d = refused(lambda: t.v1("refuse", params={"kind": "lines"}), INVALID, "two", "lines", "100%", "\U0001f600")


# ---------------------------------------------------------------- protobuf
def ends_of_fields(body):
    """The prefixes of a message that are messages themselves."""
    ends, i = {0}, 0
    def rv():
        nonlocal i
        n = s = 0
        while True:
            b = body[i]; i += 1
            n |= (b & 127) << s; s += 7
            if b < 128:
                return n
    while i < len(body):
        wt = rv() & 7
        if wt == 0: rv()
        elif wt == 1: i += 8
        elif wt == 2: n = rv(); i += n
        else: i += 4
        ends.add(i)
    return ends


def every_cut(t, path, body, empty):
    ends = ends_of_fields(body)
    for n in range(len(body) + 1):
        code, r = call_error(lambda: t.raw(path, body[:n], timeout=5))
        want = (empty,) if n == 0 else (SC.OK,) if n in ends else (INVALID,)
        check(code in want, "cut after %d of %d bytes: got %s %r, want %s" % (n, len(body), code.name, r, want[0].name))


@case("proto.cut", "protobuf")
def _(t):
    """A request cut short at every byte: INVALID_ARGUMENT, or OK where what is left is a whole message."""
    body = ld(1, "echo") + ld(2, tensor(np.arange(3, dtype=np.float32)).SerializeToString()) + ld(2, tensor(np.array([["ab"]])).SerializeToString())
    every_cut(t, INF + "Predict", body, INVALID)


@case("proto.nested", "protobuf")
def _(t):
    """Lengths that run past their parent's end, though the bytes are there, are garbage."""
    td = ld(1, np.ones(2, np.float32).tobytes()) + ld(2, b"\x02") + ld(3, "float32")
    for what, bad in (("data", tag(1, 2) + varint(200) + b"\0" * 8), ("shape", ld(1, b"\0" * 8) + tag(2, 2) + varint(50) + b"\x02"),
                      ("dtype", ld(1, b"\0" * 8) + ld(2, b"\x02") + tag(3, 2) + varint(40) + b"float32"),
                      ("unknown", td + tag(9, 2) + varint(99)), ("fixed64", td + tag(9, 1) + b"\0" * 7), ("fixed32", td + tag(9, 5) + b"\0" * 3),
                      ("varint", td + tag(9, 0) + b"\x80"), ("2**32 length", td + tag(9, 2) + varint(2**32 + 1)),
                      ("2**64 length", td + tag(9, 2) + b"\xff" * 9 + b"\x01"), ("negative length", td + tag(9, 2) + varint(-1))):
        refused(lambda: t.raw(INF + "Predict", ld(1, "echo") + ld(2, bad) + ld(15, b"x" * 300)), INVALID, what=what)
    refused(lambda: t.raw(INF + "Predict", ld(1, "echo") + tag(2, 2) + varint(2**31 + 5) + td), INVALID, what="outer length")


@case("proto.garbage", "protobuf")
def _(t):
    """Wire types that do not exist, field number 0, endless varints, a group's end without a start: INVALID_ARGUMENT."""
    head = ld(1, "echo")
    for what, b in (("wire type 6", b"\x7e\x01"), ("wire type 7", b"\x7f\x01"), ("field 0", b"\x02\x01a"), ("field 0 varint", b"\x00\x01"),
                    ("11-byte varint", tag(9, 0) + b"\xff" * 10 + b"\x01"), ("11-byte tag", b"\xff" * 10 + b"\x01"), ("end group", tag(9, 4)),
                    ("open group", tag(9, 3) + vi(1, 1)), ("crossed groups", tag(9, 3) + tag(8, 4)), ("lone tag", tag(9, 2))):
        refused(lambda: t.raw(INF + "Predict", head + b), INVALID, what=what)
        refused(lambda: t.raw("/inference.v1.ModelInference/Predict", head + b), INVALID, what="v1 " + what)


@case("proto.wiretypes", "protobuf")
def _(t):
    """Known fields with another wire type: skipped like unknown ones or refused, never INTERNAL."""
    td = tensor(np.ones(2, np.float32)).SerializeToString()
    for what, b in (("model_name varint", vi(1, 5)), ("model_name fixed32", tag(1, 5) + b"abcd"), ("inputs varint", vi(2, 1)), ("inputs fixed64", tag(2, 1) + b"12345678"),
                    ("dtype varint", ld(2, td + vi(3, 4))), ("data fixed32", ld(2, td + tag(1, 5) + b"abcd")), ("shape fixed32", ld(2, td + tag(2, 5) + b"abcd"))):
        code, r = call_error(lambda: t.raw(INF + "Predict", ld(1, "echo") + b + ld(2, td)))
        check(code in (SC.OK, INVALID, SC.NOT_FOUND), "%s: %s %r" % (what, code.name, r))


@case("proto.unknown", "protobuf")
def _(t):
    """Unknown fields of every wire type and number, groups included, are skipped, at the top and inside a tensor."""
    a = np.arange(4, dtype=np.float32)
    td = tensor(a).SerializeToString()
    unknown = b"".join((vi(n, 2**63), tag(n, 1) + b"12345678", ld(n, b"bytes"), tag(n, 5) + b"1234",
                        tag(n, 3) + vi(1, 7) + ld(2, "x") + tag(3, 3) + tag(3, 4) + tag(n, 4))[i] for n in (4, 15, 16, 1000, 2**29 - 1) for i in range(5))
    for body in (unknown + ld(1, "echo") + ld(2, td), ld(1, "echo") + ld(2, td) + unknown, ld(1, "echo") + ld(2, unknown + td), ld(1, "echo") + ld(2, td + unknown)):
        o = ip.InferenceResponse.FromString(t.raw(INF + "Predict", body)).outputs
        check(len(o) == 1 and np.array_equal(arr(o[0]), a), "got %s" % o)


@case("proto.deep", "protobuf")
def _(t):
    """100,000 nested groups do not overflow a stack."""
    code, r = call_error(lambda: t.raw(INF + "Predict", tag(9, 3) * 100_000 + tag(9, 4) * 100_000 + ld(1, "echo")))
    check(code in (SC.OK, INVALID), "got %s %r" % (code.name, r))


@case("proto.order", "protobuf")
def _(t):
    """Fields in any order, scalars sent twice (the last wins), shape packed, unpacked and mixed."""
    x = np.arange(6, dtype=np.float32)
    for what, td in (("reversed", ld(3, "float32") + ld(2, b"\x02\x03") + ld(1, x.tobytes())),
                     ("unpacked shape", ld(1, x.tobytes()) + vi(2, 2) + vi(2, 3) + ld(3, "float32")),
                     ("mixed shape", vi(2, 2) + ld(3, "float32") + ld(1, x.tobytes()) + ld(2, b"\x03")),
                     ("split shape", ld(2, b"\x02") + ld(2, b"") + ld(2, b"\x03") + ld(3, "float32") + ld(1, x.tobytes())),
                     ("long varints", ld(2, b"\x82\x80\x00\x83\x80\x80\x00") + ld(3, "float32") + ld(1, x.tobytes())),
                     ("dtype twice", ld(3, "int8") + ld(3, "float32") + ld(2, b"\x02\x03") + ld(1, x.tobytes())),
                     ("data twice", ld(1, b"nonsense") + ld(3, "float32") + ld(2, b"\x02\x03") + ld(1, x.tobytes()))):
        o = ip.InferenceResponse.FromString(t.raw(INF + "Predict", ld(2, td) + ld(1, "echo"))).outputs[0]
        check(list(o.shape) == [2, 3] and o.data == x.tobytes(), "%s: %s" % (what, o))


@case("proto.utf8", "protobuf")
def _(t):
    """Bytes that are no UTF-8 in a name or a dtype: a clean status."""
    for bad in (b"\xff", b"\xe2\x82", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"):
        expect(lambda: t.raw(INF + "Predict", ld(1, b"ec" + bad)), (INVALID, SC.NOT_FOUND))
        expect(lambda: t.raw(INF + "Predict", ld(1, "echo") + ld(2, ld(3, bad) + ld(1, b"\0"))), (INVALID,))


# ---------------------------------------------------------------- compression and size
@case("size.compressed", "size")
def _(t):
    """gzip and deflate requests are read."""
    x = np.zeros(100_000, dtype=np.float32)
    for how in (grpc.Compression.Gzip, grpc.Compression.Deflate):
        r = t.inf.Predict(ip.InferenceRequest(model_name="affine", inputs=[tensor(x)]), timeout=10, compression=how)
        check(np.array_equal(arr(r.outputs[0]), x + 10), "%s: wrong values" % how)


@case("size.compressed-raw", "size")
def _(t):
    """Damaged gzip, an unknown encoding, a compressed flag without one, a flag of 7: an error status at once."""
    good = predict_bytes("echo", tensor(np.ones(2)))
    for what, body, extra in (("cut gzip", frame(1, gzip.compress(good)[:-9]), [("grpc-encoding", "gzip")]),
                              ("not gzip", frame(1, b"abc"), [("grpc-encoding", "gzip")]),
                              ("empty gzip", frame(1, b""), [("grpc-encoding", "gzip")]),
                              ("wrong checksum", frame(1, gzip.compress(good)[:-8] + b"\0" * 8), [("grpc-encoding", "gzip")]),
                              ("not deflate", frame(1, b"\xff" * 50), [("grpc-encoding", "deflate")]),
                              ("snappy", frame(1, b"abc"), [("grpc-encoding", "snappy")]),
                              ("no encoding", frame(1, gzip.compress(good)), []), ("flag 7", frame(7, good), [])):
        r = h2_unary(t, INF + "Predict", body, extra)
        check(r["how"] in ("ended", "reset") and (r["status"] != 0 or what == "flag 7"), "%s: %s status %s %s" % (what, r["how"], r["status"], r["message"]))
    r = h2_unary(t, INF + "Predict", frame(1, gzip.compress(good)), [("grpc-encoding", "gzip")])
    check(r["status"] == 0, "raw gzip: %s" % r)
    r = h2_unary(t, INF + "Predict", frame(1, zlib.compress(good)), [("grpc-encoding", "deflate")])
    check(r["status"] == 0, "raw deflate: %s" % r)
    r = h2_unary(t, INF + "Predict", frame(0, good), [("grpc-encoding", "gzip")])
    check(r["status"] == 0, "a plain message on a gzip call: %s" % r)


@case("size.bomb", "size")
def _(t):
    """A small gzip body that unfolds to 1 GB is refused without the memory for it."""
    block = gzip.compress(b"\0" * (32 << 20), 9)
    before = t.rss_mb()
    c = H2(t)
    try:
        c.headers(1, INF + "Predict", [("grpc-encoding", "gzip")])
        send(c, 1, frame(1, block * 32))
        r = c.wait(1, 20)
    finally:
        c.close()
    check(r["how"] in ("ended", "reset") and r["status"] not in (0, None), "%(how)s status %(status)s %(message)s" % r)
    if before:
        check(t.rss_mb() - before < 400, "RSS grew from %d to %d MB" % (before, t.rss_mb()))


@case("size.limit", "size")
def _(t):
    """Just under 64 MiB passes both ways; just over it is RESOURCE_EXHAUSTED naming the limit, compressed or not."""
    limit = t.max_mb << 20
    near = np.zeros(limit - 256, dtype=np.uint8)
    near[-1] = 7
    o = t.predict("echo", tensor(near), timeout=60).outputs[0]
    check(len(o.data) == len(near) and o.data[-1] == 7, "the large tensor changed")
    for size in (limit - len(predict_bytes("echo", tensor(near))) + len(near) + 1, limit + 1):
        over = ip.InferenceRequest(model_name="echo", inputs=[tensor(np.zeros(size, dtype=np.uint8))])
        refused(lambda: t.inf.Predict(over, timeout=60), SC.RESOURCE_EXHAUSTED, (str(limit), "%d MiB" % t.max_mb, "%dMiB" % t.max_mb), what="%d bytes" % over.ByteSize())
    refused(lambda: t.inf.Predict(over, timeout=60, compression=grpc.Compression.Gzip), SC.RESOURCE_EXHAUSTED, (str(limit), "%d MiB" % t.max_mb), what="compressed")


@case("size.answer", "size")
def _(t):
    """An answer over the limit: RESOURCE_EXHAUSTED naming it, on both services."""
    count = (t.max_mb << 20) // 4 + 1
    want = (str(t.max_mb << 20), "%d MiB" % t.max_mb)
    refused(lambda: t.predict("grow", tensor(np.array([count], np.float32)), timeout=60), SC.RESOURCE_EXHAUSTED, want)
    refused(lambda: t.v1("grow", [count], timeout=60), SC.RESOURCE_EXHAUSTED, want, what="v1")
    check(len(t.predict("grow", tensor(np.array([1_000_000], np.float32)), timeout=20).outputs[0].data) == 4_000_000, "4 MB")


@case("size.announced", "size")
def _(t):
    """A frame that announces 4 GiB is refused on its header, without waiting for the bytes."""
    c = H2(t)
    try:
        c.headers(1, INF + "Predict")
        c.data(1, b"\0\xff\xff\xff\xff" + b"x" * 100)
        r = c.wait(1, 5)
        check(r["how"] in ("ended", "reset") and (r["status"] == 8 or r["how"] == "reset"), "%s" % r)
    finally:
        c.close()


@case("size.messages", "size")
def _(t):
    """Two messages, or half of one, on a unary call: an error status, no hang."""
    good = frame(0, predict_bytes("echo"))
    for what, body in (("two", good * 2), ("half a prefix", b"\0\0"), ("half a body", good[:-2]), ("one and a half", good + good[:-2])):
        r = h2_unary(t, INF + "Predict", body)
        check(r["how"] in ("ended", "reset") and r["status"] != 0, "%s: %s" % (what, r))
