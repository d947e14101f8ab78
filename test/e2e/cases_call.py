"""The command `call`, with files that NumPy writes and reads, and at a terminal."""
import io
import os
import pty
import select
import shlex
import signal
import subprocess
import tempfile
import time

import numpy as np

from caselib import Skip, case, check
from helpers import report, unique, until
from servers import ROOT

SECS = 60  # a command's start included
SAMPLES = {
    "bool": [True, False, True, True, False, False],
    "int8": [-128, 127, 0, 1, 2, 3],
    "int16": [-32768, 32767, 0, 1, 2, 3],
    "int32": [-2**31, 2**31 - 1, 0, 1, 2, 3],
    "int64": [-2**63, 2**63 - 1, 2**53 + 1, 1, 2, 3],
    "uint8": [255, 1, 2, 3, 4, 5],
    "uint16": [65535, 1, 2, 3, 4, 5],
    "uint32": [2**32 - 1, 1, 2, 3, 4, 5],
    "uint64": [2**64 - 1, 1, 2, 3, 4, 5],
    "float16": [0.1, -0.0, np.inf, -np.inf, 65504, 6e-8],
    "float32": [0.1, -0.0, np.inf, -np.inf, 3.4e38, 1e-45],
    "float64": [0.1, -0.0, np.inf, -np.inf, 1.7e308, 5e-324],
    "U": ["", "a", "h\u00e9llo", "\U0001f600", "zero\0inside", "x" * 40],
    "S": [b"", b"a", b"\xff\x00\x01", b"bytes", b"x" * 40, b"y"],
}


def command(t, *args):
    if not os.environ.get("E2E_DENO"):
        raise Skip("needs E2E_DENO, the deno command")
    return shlex.split(os.environ["E2E_DENO"]) + ["run", "-A", "mod.ts", "call", "--address", t.addr] + list(args)


def call(t, *args, stdin=b""):
    """(status, stdout, stderr) of the command."""
    done = subprocess.run(command(t, *args), cwd=ROOT, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=dict(os.environ, NO_COLOR="1"), timeout=SECS)
    return done.returncode, done.stdout, done.stderr.decode()


def called(t, *args, stdin=b""):
    status, out, err = call(t, *args, stdin=stdin)
    check(status == 0, "status %s: %s" % (status, err))
    return out


def saved(folder, name, a, version=None):
    path = os.path.join(folder, name + ".npy")
    with open(path, "wb") as f:
        np.lib.format.write_array(f, np.asanyarray(a), version=version, allow_pickle=True)
    return path


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == np.ascontiguousarray(b).tobytes()


def arrays():
    """(name, array) of every dtype, order of bytes and of elements, and shape."""
    for kind, values in SAMPLES.items():
        flat = np.array(values, dtype=kind)
        yield kind + " flat", flat
        yield kind + " 2-D", flat.reshape(2, 3)
        yield kind + " Fortran", np.asfortranarray(flat.reshape(2, 3))
        yield kind + " 3-D Fortran", np.asfortranarray(np.concatenate([flat, flat]).reshape(2, 3, 2))
        yield kind + " scalar", flat[3]
        yield kind + " empty", flat[:0].reshape(0, 3)
        if flat.dtype.itemsize > 1 and kind != "S":
            yield kind + " big-endian", flat.astype(flat.dtype.newbyteorder(">"))
            yield kind + " big-endian Fortran", np.asfortranarray(flat.reshape(2, 3).astype(flat.dtype.newbyteorder(">")))


@case("call.npy", "call", "call")
def _(t):
    """Arrays of every dtype, order and shape come back as they were saved; what --out wrote is what np.load reads."""
    with tempfile.TemporaryDirectory() as folder:
        names, sent = zip(*arrays())
        paths = [saved(folder, "in%d" % i, a) for i, a in enumerate(sent)]
        called(t, "echo", *paths, "--out", os.path.join(folder, "out.npy"))
        for i, (name, a) in enumerate(zip(names, sent)):
            got = np.load(os.path.join(folder, "out.%d.npy" % i))
            # The answer is in this machine's order; a string's width is that of the longest, 1 at least.
            want = np.asarray(a).astype(np.asarray(a).dtype.newbyteorder("="))
            if want.dtype.kind in "US":
                check(got.shape == want.shape and got.tolist() == want.tolist(), "%s: %r" % (name, got))
            else:
                check(same(got, want), "%s: got %s %s %r" % (name, got.dtype, got.shape, got))


@case("call.npy_versions", "call", "call")
def _(t):
    """Each version of the format; a header beyond 64 KB; objects and archives are refused in one line."""
    a = np.arange(6, dtype=">i4").reshape(2, 3)
    with tempfile.TemporaryDirectory() as folder:
        for version in ((1, 0), (2, 0), (3, 0)):
            out = called(t, "echo", saved(folder, "v%d" % version[0], a, version))
            check(out == b"[[0, 1, 2],\n [3, 4, 5]]\n", "version %s: %r" % (version, out))
        for path, needle in (
            (saved(folder, "objects", np.array([{}, "a"], dtype=object)), "Python objects"),
            (saved(folder, "fields", np.zeros(2, dtype=[("a", "f4")])), "structured"),
            (saved(folder, "complex", np.zeros(2, dtype="c8")), "<c8"),
            (saved(folder, "times", np.zeros(2, dtype="M8[s]")), "<M8[s]"),
        ):
            status, out, err = call(t, "echo", path)
            check((status, out) == (2, b"") and needle in err and err.count("\n") == 1, "%s: %s %r" % (path, status, err))
        path = os.path.join(folder, "x.npz")
        np.savez(path, a=a)
        status, _out, err = call(t, "echo", path)
        check(status == 2 and "it is an archive" in err, "an archive: %s %r" % (status, err))


@case("call.pipe", "call", "call")
def _(t):
    """One command's --out - is the next one's -, and NumPy reads it too."""
    a = np.arange(4, dtype=np.float16).reshape(2, 2)
    file = io.BytesIO()
    np.save(file, a)
    once = called(t, "affine", "-", "--out", "-", stdin=file.getvalue())
    check(same(np.load(io.BytesIO(once)), a * 2 + 10), "once: %r" % once)
    twice = called(t, "affine", "-", "--out", "-", stdin=once)
    check(same(np.load(io.BytesIO(twice)), (a * 2 + 10) * 2 + 10), "twice: %r" % twice)


class Terminal:
    """The command at a terminal of its own."""

    def __init__(self, t, *args):
        argv = command(t, *args)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            os.execvpe(argv[0], argv, dict(os.environ, TERM="xterm"))
        self.text, self.ended = "", None

    def until(self, needle, secs=SECS):
        """Reads until needle has come; what it came with is not found again."""
        stop = time.time() + secs
        while needle not in self.text:
            ready = select.select([self.fd], [], [], max(0, stop - time.time()))[0]
            try:
                data = os.read(self.fd, 65536) if ready else b""
            except OSError:  # as Linux says that the other side has closed
                data = b""
            check(data, "ended or too slow before %r: %r" % (needle, self.text))
            self.text += data.decode(errors="replace")
        before, self.text = self.text.split(needle, 1)
        return before

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def status(self):
        def gone():
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.ended = (os.waitstatus_to_exitcode(status),)
            return self.ended
        return until(gone, SECS, "the command ends")[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.ended is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


@case("call.chat", "call", "call")
def _(t):
    """Lines can be edited; Ctrl-C ends an answer and not the chat, which remembers it; Ctrl-D leaves."""
    session = unique("call")
    with Terminal(t, "talker", "--session", session) as term:
        term.until("> ")
        term.type("helo\x1b[Dl\r")
        term.until("hello \r\n")
        term.until("> ")
        term.type("slow 1000\r")
        term.until("s2 ")
        term.type("\x03")
        term.until("(interrupted)")
        term.until("> ")
        term.type("never said\x03")
        term.until("Ctrl-D leaves")
        term.type("history\r")
        term.until("[{")
        history = term.until("}]")
        check('"slow 1000"' in history and '"interrupted":true' in history, "the history: %r" % history)
        check("never said" not in history, "what was not sent: %r" % history)
        term.type("\x04")
        term.until("--session " + session)
        check(term.status() == 0, "the status")
    check(report(t, "talker", session)[1:] != [0, 0], "the turn that was interrupted")


@case("call.terminal", "call", "call")
def _(t):
    """A token's escapes are shown, not obeyed; Ctrl-C ends a stream with status 130, and the call."""
    with Terminal(t, "parrot", "--chat", "\x1b]0;title\x07\x1b[2J") as term:
        term.until("1: \\x1b]0;title\\x07\\x1b[2J\r\n")
        check(term.status() == 0, "the status")
    key = unique("call")
    with Terminal(t, "watched", "--stream", "-p", "key=" + key, "-p", "delay_ms=10") as term:
        term.until("w3")
        term.type("\x03")
        check(term.status() == 130, "the status")
    until(lambda: report(t, "watched", key)[3] == 1, 5, "the handler ends")


@case("call.progress", "call", "call")
def _(t):
    """A long batch shows how far it is, and only at a terminal; its answers are in the order of its rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = saved(folder, "rows", np.stack([np.arange(20000), np.ones(20000)], axis=1))
        with Terminal(t, "sum", "--batch", path) as term:
            term.until(" rows/s")
            term.until("\r\x1b[K")
            shown = term.until("20000 rows in ")
            check(shown.split() == ["[%d.0]" % (i + 1) for i in range(20000)], "the answers: %r" % shown[:100])
            check(term.status() == 0, "the status")
        status, out, err = call(t, "sum", "--batch", path)
        check((status, err) == (0, ""), "%s %r" % (status, err))
        check(np.loadtxt(io.BytesIO(out.replace(b"[", b"").replace(b"]", b"")))[-1] == 20000, "the last answer")
