"""ChatStream: sessions, heartbeats, turns, interruption."""
import json
import queue
import time

from caselib import MOD, SC, case, check, ld, mp, parallel
from helpers import INVALID, h2_open, refused, report, unique, until


class Chat:
    """A stream that is spoken to turn by turn."""

    def __init__(self, t, model="parrot", session="", timeout=15, md=(), ch=None, **kw):
        self.box, self.session = queue.Queue(), session
        self.call = t.mod.ChatStream(iter(self.box.get, None), timeout=timeout, metadata=t.md(model) + tuple(md), **kw)

    def say(self, content, session=None):
        self.box.put(mp.UserMessage(session_id=self.session if session is None else session, content=content))

    def piece(self):
        return next(self.call)

    def answer(self, session=None):
        """The pieces of one turn, joined."""
        text = ""
        while True:
            p = self.piece()
            check(session is None or p.session_id == session, "a piece of session %r came" % p.session_id)
            text += p.content
            if p.finish_reason:
                return text

    def ask(self, content, session=None):
        self.say(content, session)
        return self.answer()

    def close(self):
        """Half-closes and takes what is left."""
        self.box.put(None)
        return list(self.call)

    def cancel(self):
        self.box.put(None)
        self.call.cancel()


def ended(t, session, what="the turn's finally"):
    """(started, aborted, ended) of a talker session, once as many turns have ended as have started."""
    return until(lambda: (lambda r: r if r[0] and r[0] == r[2] else None)(report(t, "talker", session)), 2, what)


@case("chat.turns", "chat")
def _(t):
    """Three turns of one session; every piece has the session's id, the last of a turn finish_reason."""
    sid = unique("turns")
    c = Chat(t, session=sid)
    check([c.ask(x) for x in "abc"] == ["1: a", "2: b", "3: c"], "turns")
    check(c.close() == [] and c.call.code() is SC.OK, "the end: %s" % c.call.code())
    c = Chat(t, "talker", unique("words"))
    c.say("one two three")
    got = []
    while not got or not got[-1].finish_reason:
        got.append(c.piece())
    check("".join(p.content for p in got) == "one two three " and [p.finish_reason for p in got] == [False] * (len(got) - 1) + [True], "%s" % got)
    check(all(p.session_id == c.session for p in got), "session ids %s" % {p.session_id for p in got})
    check(c.ask("nothing") == "" and c.ask("emit") == "one two", "an empty turn, and emit")
    c.close()


@case("chat.pieces-live", "chat")
def _(t):
    """Pieces come as they are said, not at the end of the turn."""
    c = Chat(t, "talker", unique("live"), md=(("param-delay_ms", "400"),))
    start = time.time()
    c.say("slow 4")
    first = c.piece()
    check(first.content == "s0 " and time.time() - start < 0.8, "the first piece took %.2f s" % (time.time() - start))
    c.answer()
    check(time.time() - start >= 1.1, "param-delay_ms did not reach the handler")
    c.close()


@case("chat.new-session", "chat")
def _(t):
    """An empty session_id: the server makes one, unguessable, the same for the whole stream; another stream gets another."""
    made = []
    for _ in range(3):
        c = Chat(t)
        c.say("")  # a heartbeat first asks for the same session
        ids = [c.piece().session_id]
        for n, x in enumerate("ab", 1):
            c.say(x)
            p = c.piece()
            ids.append(p.session_id)
            check(p.content == "%d: %s" % (n, x), "turn %d answered %r" % (n, p.content))
            while not p.finish_reason:
                p = c.piece()
        check(len(set(ids)) == 1 and len(ids[0]) >= 16, "ids on one stream: %s" % ids)
        check([c.ask("c", ids[0])] == ["3: c"], "the made id, given back, is the same session")
        made.append(ids[0])
        c.close()
    check(len(set(made)) == 3, "ids repeat: %s" % made)
    c = Chat(t, session=made[0])
    check(c.ask("d") == "4: d", "a made session is not found again on another stream")
    c.close()


@case("chat.heartbeat", "chat")
def _(t):
    """Empty content is answered at once, empty and unfinished, also during a turn, and never reaches the handler."""
    sid = unique("beat")
    c = Chat(t, session=sid)
    for _ in range(3):
        c.say("")
        p = c.piece()
        check(p.session_id == sid and p.content == "" and not p.finish_reason, "heartbeat: %s" % p)
    check(c.ask("x") == "1: x", "heartbeats were counted as turns")
    c.close()
    c = Chat(t, "talker", unique("beat"), md=(("param-delay_ms", "300"),))
    c.say("slow 5")
    check(c.piece().content == "s0 ", "the turn's first piece")
    c.say("")
    start = time.time()
    p = c.piece()
    check(p.content == "" and not p.finish_reason and time.time() - start < 0.25, "a heartbeat during a turn: %s after %.2f s" % (p, time.time() - start))
    check(c.answer() == "s1 s2 s3 s4 ", "the turn goes on")
    c.close()


@case("chat.several", "chat")
def _(t):
    """Several sessions on one stream: each counts for itself, and they run beside each other."""
    a, b = unique("a"), unique("b")
    c = Chat(t)
    check([c.ask("1", a), c.ask("1", b), c.ask("2", a), c.ask("2", b)] == ["1: 1", "1: 1", "2: 2", "2: 2"], "counts")
    c.close()
    c = Chat(t, "talker", md=(("param-delay_ms", "100"),))
    c.say("slow 10", a)
    c.piece()
    c.say("quick", b)
    start = time.time()
    while True:
        p = c.piece()
        if p.session_id == b and p.finish_reason:
            break
    check(time.time() - start < 0.6, "the second session waited %.2f s for the first" % (time.time() - start))
    while not (p.session_id == a and p.finish_reason):
        p = c.piece()
    c.close()


@case("chat.queued", "chat")
def _(t):
    """Turns of one session sent at once are answered one at a time, in order."""
    sid = unique("queue")
    c = Chat(t, "talker", sid, md=(("param-delay_ms", "10"),))
    for i in range(10):
        c.say("slow 3" if i % 2 else "w%d" % i)
    want = ["s0 s1 s2 " if i % 2 else "w%d " % i for i in range(10)]
    got = [c.answer() for _ in range(10)]
    check(got == want, "%s" % got)
    c.close()


@case("chat.shared", "chat")
def _(t):
    """Two streams sharing one session: no turn is lost or counted twice, and turns do not run at once."""
    sid = unique("shared")
    chats = [Chat(t, session=sid) for _ in range(4)]
    def talk(c):
        return [int(c.ask("x").split(":")[0]) for _ in range(25)]
    got = parallel([lambda c=c: talk(c) for c in chats], 4)
    for r in got:
        if isinstance(r, BaseException):
            raise r
        check(r == sorted(r), "one stream saw %s" % r)
    check(sorted(sum(got, [])) == list(range(1, 101)), "counts lost or doubled: %s" % sorted(sum(got, []))[:20])
    for c in chats:
        c.close()


@case("chat.shared-slow", "chat")
def _(t):
    """A turn on one stream waits for the same session's turn on another."""
    sid = unique("wait")
    a, b = Chat(t, "talker", sid), Chat(t, "talker", sid)
    a.say("slow 8")
    a.piece()
    start = time.time()
    check(json.loads(b.ask("history").strip())[-1]["content"] == "s0 s1 s2 s3 s4 s5 s6 s7 ", "the second turn did not see the first's answer")
    check(time.time() - start > 0.25, "it did not wait")
    a.close(), b.close()


@case("chat.ids", "chat")
def _(t):
    """A session id is data: prototype names, unicode, control characters, 256 bytes; more is INVALID_ARGUMENT."""
    for sid in ("__proto__", "constructor", "toString", "\U0001f600" * 64, "x" * 256, "a\0b", "\r\nx: y", " ", "../../etc", "parrot@1", "%00", "\ufeff", "\u202e"):
        c = Chat(t, session=sid)
        c.say("x")
        p = c.piece()
        check(p.session_id == sid and p.content.endswith(": x"), "%r: %r in %r" % (sid, p.content, p.session_id))
        c.close()
    for sid in ("x" * 257, "\U0001f600" * 65, "x" * 1_000_000):
        def one():
            c = Chat(t, session=sid)
            c.say("x")
            try:
                return c.piece()
            finally:
                c.box.put(None)
        d = refused(one, INVALID, "256", what="%d characters" % len(sid))
        check(len(d) < 2000, "the message has %d characters" % len(d))
    c = Chat(t, session=unique("plain"))
    check(c.ask("x") == "1: x", "a new session is not new any more: prototype pollution?")
    c.close()


@case("chat.models", "chat")
def _(t):
    """Sessions belong to a function: the same id with another one is another session."""
    sid = unique("both")
    a, b = Chat(t, "parrot", sid), Chat(t, "talker", sid)
    check(a.ask("x") == "1: x" and a.ask("y") == "2: y", "parrot")
    check(json.loads(b.ask("history")) == [], "talker sees another function's history")
    a.close(), b.close()


@case("chat.return", "chat")
def _(t):
    """A client that comes back soon finds its session; after idleMs it is gone, and close() ran once."""
    sid = unique("return")
    c = Chat(t, "brief", sid)
    check(c.ask("x") == "1" and c.ask("x") == "2", "two turns")
    c.close()
    c = Chat(t, "brief", sid)
    check(c.ask("x") == "3", "the session was gone at once")
    check(report(t, "brief", sid) == [0], "close() ran for a session in use")
    c.cancel()
    until(lambda: report(t, "brief", sid) == [1], 5, "close()")
    c = Chat(t, "brief", sid)
    check(c.ask("x") == "1", "the session outlived idleMs")
    time.sleep(0.6)  # twice idleMs: nothing may happen in that time, so there is nothing to wait for
    check(c.ask("x") == "2" and report(t, "brief", sid) == [1], "a session with an open stream was closed")
    c.close()
    until(lambda: report(t, "brief", sid) == [2], 5, "the second close()")


@case("chat.half-close", "chat")
def _(t):
    """Half-close: the running turn and the queued one finish, then OK."""
    sid = unique("half")
    c = Chat(t, "talker", sid)
    c.say("slow 5")
    c.say("last")
    rest = c.close()
    check("".join(p.content for p in rest) == "s0 s1 s2 s3 s4 last " and sum(p.finish_reason for p in rest) == 2, "%s" % rest)
    check(c.call.code() is SC.OK, "%s" % c.call.code())
    c = Chat(t, "parrot")
    check(c.close() == [] and c.call.code() is SC.OK, "a stream without a message: %s" % c.call.code())


@case("chat.interrupt", "chat")
def _(t):
    """Cancel: the turn is aborted; what was said so far stays in the session's history."""
    sid = unique("cut")
    c = Chat(t, "talker", sid, md=(("param-delay_ms", "1000"),))
    c.say("before")
    check(c.answer() == "before ", "a whole turn first")
    c.say("slow 50")
    p = c.piece()
    check(p.content == "s0 ", "%s" % p)
    c.cancel()
    start = time.time()
    got = ended(t, sid)
    check(got[:2] == [2, 1] and time.time() - start < 0.6, "started, aborted, ended: %s after %.2f s" % (got, time.time() - start))
    c = Chat(t, "talker", sid)
    history = json.loads(c.ask("history"))
    check([(m["role"], m["content"]) for m in history][:3] == [("user", "before"), ("assistant", "before "), ("user", "slow 50")], "%s" % history)
    check(len(history) == 4 and history[3]["role"] == "assistant" and history[3]["content"].startswith("s0"), "what was said is lost: %s" % history)
    c.close()


@case("chat.reset", "chat")
def _(t):
    """A connection that is reset during a turn aborts it; a queued turn of that stream never runs, another stream's does."""
    sid = unique("reset")
    msg = mp.UserMessage(session_id=sid, content="slow 100").SerializeToString()
    c, s = h2_open(t, MOD + "ChatStream", [msg, msg], [("model-id", "talker")], end=False)
    c.pump(3, lambda: c._st(s)["data"])
    other = Chat(t, "talker", sid)
    other.say("mine")
    c.close(reset=True)
    start = time.time()
    check(other.answer() == "mine " and time.time() - start < 1.5, "another stream's turn did not get through")
    got = ended(t, sid)
    check(got[0] in (2, 3) and got[1] >= 1, "started, aborted, ended: %s" % got)
    other.close()


@case("chat.error", "chat")
def _(t):
    """A handler that throws in a turn: its pieces, then the status; the session stays usable."""
    c = Chat(t, "boom", unique("boom"))
    c.say("x")
    refused(lambda: c.piece(), SC.INTERNAL)
    c.box.put(None)
    sid = unique("refuse")
    for content, code in (("unavailable", SC.UNAVAILABLE), ("null", SC.INTERNAL), ("undefined", SC.INTERNAL), ("hostile", SC.INTERNAL)):
        c = Chat(t, "refuse", sid)
        c.say(content)
        check(c.piece().content == "before", "the piece before the error")
        refused(lambda: list(c.call), code, what=content)
        c.box.put(None)


@case("chat.garbage", "chat")
def _(t):
    """A message that is no protobuf, and a session_id that is no UTF-8: INVALID_ARGUMENT."""
    for bad in (b"\xff\xff", ld(1, b"abc")[:-1], ld(2, b"abc")[:-2], ld(1, b"\xff\xfe") + ld(2, "x")):
        c, s = h2_open(t, MOD + "ChatStream", [bad], [("model-id", "parrot")], end=False)
        try:
            r = c.wait(s, 4)
            check(r["status"] == 3, "%s: %s" % (bad.hex(), r))
        finally:
            c.close()


@case("chat.text", "chat")
def _(t):
    """Long and odd contents come back whole; white space is content, not a heartbeat."""
    for text in (" ", "\n", "\0", "\U0001f600" * 1000, "x" * 1_000_000, "\u202e\ufeff"):
        c = Chat(t, session=unique("text"))
        check(c.ask(text) == "1: " + text, "%r changed" % text[:20])
        c.close()


@case("chat.history", "chat")
def _(t):
    """The history a handler sees is bounded, in turns and in characters; the newest stay."""
    sid = unique("long")
    c = Chat(t, "talker", sid, timeout=60)
    for i in range(400):
        c.say("m%d" % i)
        c.answer()
    history = json.loads(c.ask("history"))
    check(len(history) < 800 and history[-1]["content"] == "m399 ", "%d messages, the last %s" % (len(history), history[-1:]))
    for i in range(40):
        c.ask("y" * 100_000)
    size = len(c.ask("history"))
    check(size < 8_000_000, "a history of %d characters" % size)
    c.close()


@case("chat.params", "chat")
def _(t):
    """param-<name> metadata: undeclared and bad ones are refused by name."""
    for md, need in ((("param-nope", "1"), "nope"), (("param-delay_ms", "x"), "delay_ms"), (("param-delay_ms", "-1"), "delay_ms")):
        def one():
            c = Chat(t, "talker", unique("p"), md=(md,))
            c.say("x")
            try:
                return c.piece()
            finally:
                c.box.put(None)
        refused(one, INVALID, need)


@case("chat.deadline", "deadline")
def _(t):
    """A deadline ends a chat during a turn, and a chat that is quiet."""
    sid = unique("late")
    for content in ("slow 100", ""):
        msg = mp.UserMessage(session_id=sid, content=content).SerializeToString()
        c, s = h2_open(t, MOD + "ChatStream", [msg], [("model-id", "talker"), ("grpc-timeout", "400m")], end=False)
        try:
            r = c.wait(s, 4)
            check(r["how"] in ("ended", "reset") and (r["status"] == 4 or r["how"] == "reset") and r["secs"] < 1.6, "%r: %s" % (content, r))
        finally:
            c.close()
    got = ended(t, sid)
    check(got == [1, 1, 1], "started, aborted, ended: %s" % got)


@case("chat.many", "chat")
def _(t):
    """100 chats at once on one connection, each with its own session."""
    def one(i):
        c = Chat(t, session=unique("many"), timeout=30)
        check([c.ask("%d" % i) for _ in range(5)] == ["%d: %d" % (n, i) for n in range(1, 6)], "chat %d" % i)
        c.close()
    for r in parallel([lambda i=i: one(i) for i in range(100)], 50):
        if isinstance(r, BaseException):
            raise r


@case("chat.leak", "chat")
def _(t):
    """300 chats cancelled after their first answer: descriptors and memory come back (B001)."""
    def one():
        c = Chat(t, session=unique("leak"))
        c.say("x")
        c.piece()
        c.cancel()
    for _ in range(100):
        one()  # warm-up
    before, files = t.rss_mb(), t.fds()
    for _ in range(300):
        one()
    c = Chat(t, session=unique("after"))
    check(c.ask("x") == "1: x", "the next chat")
    c.close()
    if before:
        check(t.fds() <= files * 1.1 + 1, "descriptors: %d, then %d" % (files, t.fds()))
        check(t.rss_mb() <= before * 1.1 + 20, "RSS: %d, then %d MB" % (before, t.rss_mb()))


@case("chat.flood", "chat")
def _(t):
    """2,000 turns sent without reading a reply are all answered in order, or the client has to wait; nothing is lost."""
    sid = unique("flood")
    c = Chat(t, session=sid, timeout=60)
    for i in range(2000):
        c.say("%d" % i)
    got = [c.answer() for _ in range(2000)]
    check(got == ["%d: %d" % (i + 1, i) for i in range(2000)], "%d answers, some wrong" % len(got))
    c.close()
