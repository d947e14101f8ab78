"""Two servers on one Redis behind one nginx, and a server with its sessions in a file: what is shared, what survives.

Every server of this suite runs on a free port and is ended with it. The last line is "N passed, N failed".
"""
import contextlib
import functools
import json
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import grpc
import inference_pb2 as ip
import inference_pb2_grpc as ipg
import model_inference_pb2 as mp
import model_inference_pb2_grpc as mpg

from caselib import check
from helpers import until
from servers import ROOT, Server
from suite import play, run

FUNCTIONS = os.path.join(ROOT, "test", "e2e", "testdata", "sessions")
SC = grpc.StatusCode
LEASE_SECS = 10
IDLE_SECS = 2  # of keeper.ts
TESTS = []


def test(fn):
    TESTS.append(fn)
    return fn


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


# ---------------------------------------------------------------- the servers around ours
class Redis:
    """It keeps what it was told on disk, so that it can be stopped and started."""

    def __init__(self, tmp, password=None):
        self.tmp, self.port, self.password = tmp, free_port(), password
        self.start()

    @property
    def url(self):
        return "redis://%s127.0.0.1:%d/1" % (":%s@" % self.password if self.password else "", self.port)

    def start(self):
        args = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.tmp, "--save", "", "--appendonly", "yes",
                "--appendfsync", "always"] + (["--requirepass", self.password] if self.password else [])
        self.proc = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: listens(self.port), 10, "redis-server listens")

    def stop(self):
        self.proc.kill()
        self.proc.wait()

    def command(self, *args):
        out = subprocess.run(["redis-cli", "-p", str(self.port), "-n", "1"] + list(args), capture_output=True, text=True, timeout=10)
        return out.stdout.split()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Nginx:
    """One address for several servers; each call goes to the next of them."""

    CONF = """
daemon off;
pid %(tmp)s/nginx.pid;
error_log %(tmp)s/nginx.log;
worker_processes 1;
events { worker_connections 512; }
http {
  access_log off;
  client_body_temp_path %(tmp)s/body;
  proxy_temp_path %(tmp)s/proxy;
  fastcgi_temp_path %(tmp)s/fastcgi;
  uwsgi_temp_path %(tmp)s/uwsgi;
  scgi_temp_path %(tmp)s/scgi;
  client_max_body_size 0;
  upstream tensorlet {
%(upstream)s
  }
  server {
    listen 127.0.0.1:%(port)d http2;
    location / {
      grpc_pass grpc://tensorlet;
      grpc_read_timeout 60s;
      grpc_connect_timeout 2s;
    }
  }
}
"""

    def __init__(self, tmp, servers):
        self.port = free_port()
        upstream = "\n".join("    server %s max_fails=1 fail_timeout=1s;" % s.address for s in servers)
        conf = os.path.join(tmp, "nginx.conf")
        with open(conf, "w") as f:
            f.write(self.CONF % {"tmp": tmp, "port": self.port, "upstream": upstream})
        self.proc = subprocess.Popen(["nginx", "-p", tmp, "-c", conf], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: listens(self.port), 10, "nginx listens")

    @property
    def address(self):
        return "127.0.0.1:%d" % self.port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proc.terminate()
        self.proc.wait()


def serve(sessions, **kw):
    """A server without a supervisor, which would replace it."""
    return Server(FUNCTIONS, args=["--no-supervisor", "--sessions", sessions], **kw)


class Pair:
    """Two servers on one Redis behind one nginx."""

    def __init__(self, stack, tmp):
        self.redis = stack.enter_context(Redis(tmp))
        self.servers = [stack.enter_context(serve(self.redis.url)) for _ in range(2)]
        self.nginx = stack.enter_context(Nginx(tmp, self.servers))

    @property
    def here(self):
        return self.servers[0]

    @property
    def there(self):
        return self.servers[1]


# ---------------------------------------------------------------- the client
def channel(address):
    return grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)])


class Chat:
    """A stream that is spoken to turn by turn."""

    def __init__(self, where, session, secs=40):
        self.box, self.session, self.channel = queue.Queue(), session, channel(where.address)
        self.call = mpg.ModelInferenceStub(self.channel).ChatStream(iter(self.box.get, None), timeout=secs, metadata=(("model-id", "keeper"),))

    def say(self, content):
        self.box.put(mp.UserMessage(session_id=self.session, content=content))

    def piece(self):
        return next(self.call)

    def answer(self):
        text = ""
        while True:
            p = self.piece()
            text += p.content
            if p.finish_reason:
                return text

    def ask(self, content):
        self.say(content)
        return self.answer()

    def close(self):
        self.box.put(None)
        self.channel.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def ask(where, session, *contents):
    """Turns on a stream of their own."""
    with Chat(where, session) as c:
        return [c.ask(x) for x in contents]


def history(where, session):
    return json.loads(ask(where, session, "history")[0])


def refused(fn):
    try:
        got = fn()
    except grpc.RpcError as e:
        return e
    raise AssertionError("it was answered with %r" % (got,))


def predict(where):
    x = ip.TensorData(data=b"\0\0\x80?", shape=[1], dtype="float32")
    with channel(where.address) as ch:
        return ipg.InferenceServiceStub(ch).Predict(ip.InferenceRequest(model_name="keeper", inputs=[x]), timeout=5).outputs[0].data == x.data


def answers(where):
    try:
        ask(where, "probe-%d" % time.time_ns(), "x")
        return True
    except grpc.RpcError as e:
        check(e.code() is SC.UNAVAILABLE, "%s %s" % (e.code(), e.details()))
        return False


def unreachable(where):
    e = refused(lambda: ask(where, "unreachable", "x"))
    check(e.code() is SC.UNAVAILABLE and e.details().startswith("The session store cannot be reached"), "%s %s" % (e.code(), e.details()))
    check(not re.search(r"ECONN|redis|127\.0|at ", e.details()), "internals: %s" % e.details())


def logged(server, pattern):
    return [x for x in list(server.lines) if re.search(pattern, x)]


def unique(prefix):
    return "%s-%d" % (prefix, time.time_ns())


# ---------------------------------------------------------------- the tests
@test
def turns_go_on_at_any_server(p):
    """Each turn on a stream of its own, so at one server and then at the other; the state holds a Map with BigInts."""
    sid = unique("shared \u00fc*")
    got = [ask(p.nginx, sid, "x")[0] for _ in range(10)]
    check(got == ["%d: x" % (i + 1) for i in range(10)], "%s" % got)
    check(history(p.here, sid) == history(p.there, sid)[:20] and len(history(p.there, sid)) == 24, "histories differ")


@test
def turns_of_many_streams_stay_in_order(p):
    turns_in_order([p.nginx], 8, 10)


def turns_in_order(where, streams, turns):
    """Streams that all speak in one session: no turn is lost or doubled, and each stream's own are in order."""
    sid, got, errors = unique("order"), [], []

    def work(name):
        try:
            with Chat(where[name % len(where)], sid) as c:
                for i in range(turns):
                    got.append((name, i, c.ask("%d.%d" % (name, i))))
        except grpc.RpcError as e:
            errors.append("%s %s" % (e.code(), e.details()))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(streams)]
    for x in threads:
        x.start()
    for x in threads:
        x.join(60)
    check(not errors and len(got) == streams * turns, "%s" % errors)
    numbers = sorted(int(text.split(":")[0]) for _, _, text in got)
    check(numbers == list(range(1, streams * turns + 1)), "turns were lost or doubled: %s" % numbers)
    said = history(where[0], sid)
    check(said[1::2] == sorted((t for _, _, t in got), key=lambda t: int(t.split(":")[0])), "the history is not what was answered")
    for name in range(streams):
        own = [int(x.split(".")[1]) for x in said[0::2] if x.startswith("%d." % name)]
        check(own == list(range(turns)), "stream %d is not in order: %s" % (name, own))


@test
def a_session_ends_once_where_it_was_served_last(p):
    sid = unique("once")
    ask(p.here, sid, "a")
    ask(p.there, sid, "b", "b")
    line = "closed %s idle 3 2" % sid
    until(lambda: logged(p.there, line), IDLE_SECS + 5, "its end")
    time.sleep(IDLE_SECS)  # the other one would have ended it by then
    check(len(logged(p.there, sid)) == 1 and not logged(p.here, sid), "%s %s" % (logged(p.here, sid), logged(p.there, sid)))
    check(ask(p.here, sid, "c") == ["1: c"], "it did not begin anew")


@test
def a_quiet_stream_keeps_its_session(p):
    sid = unique("quiet")
    ask(p.here, sid, "a")
    with Chat(p.there, sid) as c:
        c.say("")  # a heartbeat at a server that has not served it
        check(c.piece().content == "", "no heartbeat")
        time.sleep(2.5 * IDLE_SECS)
        check(c.ask("b") == "2: b", "the session is gone")


@test
def the_store_stops_and_starts(p):
    sid = unique("outage")
    ask(p.nginx, sid, "a", "b")
    before = [len(logged(s, "session store can")) for s in p.servers]
    p.redis.stop()
    for s in p.servers:
        unreachable(s)
        unreachable(s)
        check(predict(s), "predict")
        with Chat(s, sid) as c:
            c.say("")
            check(c.piece().finish_reason is False, "no heartbeat")
    unreachable(p.nginx)
    p.redis.start()
    for s in p.servers:
        until(lambda: answers(s), 10, "chats again")
    check(ask(p.here, sid, "c") == ["3: c"] and ask(p.there, sid, "d") == ["4: d"], "the session is not what it was")
    for s, n in zip(p.servers, before):
        lines = logged(s, "session store can")[n:]
        check(len(lines) == 2 and "cannot be reached" in lines[0] and "again" in lines[1], "\n".join(lines))


@test
def the_store_hangs(p):
    sid = unique("hang")
    with Chat(p.here, sid) as c:  # a stream that stays open: the session is not idle
        check(c.ask("a") == "1: a", "the first turn")
        p.redis.proc.send_signal(signal.SIGSTOP)
        try:
            unreachable(p.here)
            check(predict(p.here), "predict")
        finally:
            p.redis.proc.send_signal(signal.SIGCONT)
        until(lambda: answers(p.here), 10, "chats again")
        check(ask(p.there, sid, "b") == ["2: b"] and c.ask("c") == "3: c", "the session is not what it was")


@test
def a_stopped_server_does_not_overwrite_what_came_after_it(p):
    """It is stopped in mid-turn until its lease has run out; its turn fails when it goes on, and leaves nothing."""
    sid = unique("fence")
    ask(p.here, sid, "a")
    with Chat(p.here, sid, secs=60) as c:
        c.say("slow 30")
        c.piece()
        p.here.proc.send_signal(signal.SIGSTOP)
        try:
            began = time.time()
            check(ask(p.there, sid, "b") == ["2: b"], "the other server")
            took = time.time() - began
        finally:
            p.here.proc.send_signal(signal.SIGCONT)
        e = refused(c.answer)
        check(e.code() is SC.ABORTED and "lease" in e.details(), "%s %s" % (e.code(), e.details()))
    check(LEASE_SECS * 0.5 < took < LEASE_SECS + 5, "the lease took %.1f s" % took)
    until(lambda: answers(p.here), 10, "chats again")  # its waits for the store have run out while it stood still
    said = history(p.here, sid)
    check(said == ["a", "1: a", "b", "2: b"], "%s" % said)


@test
def a_killed_servers_sessions_go_on_at_the_other(p):
    """kill -9 in the middle of a turn of each of ten sessions; the last test that has both servers."""
    sids = [unique("kill") for _ in range(10)]
    chats = [Chat(p.here, sid) for sid in sids]
    for i, c in enumerate(chats):
        check([c.ask(x) for x in "ab"] == ["1: a", "2: b"], "turns")
    left = unique("left")
    ask(p.here, left, "a")
    for c in chats:
        c.say("slow 1000")
    for c in chats:
        c.piece()
    p.here.kill()
    for c in chats:
        check(refused(c.answer).code() is SC.UNAVAILABLE, "the killed server's stream")
        c.close()
    began = time.time()
    found = [None] * len(sids)

    def visit(i):
        found[i] = history(p.nginx, sids[i])

    threads = [threading.Thread(target=visit, args=(i,)) for i in range(len(sids))]
    for x in threads:
        x.start()
    for x in threads:
        x.join(LEASE_SECS + 15)
    check(found == [["a", "1: a", "b", "2: b"]] * len(sids), "%s" % found)
    check(time.time() - began < LEASE_SECS + 5, "the leases took %.1f s" % (time.time() - began))
    # Of a session that nobody comes for nothing stays.
    until(lambda: not [k for k in p.redis.command("KEYS", "*") if left in k], IDLE_SECS + 15, "the store forgets a session of the dead")
    check(not logged(p.there, left), "the other server ended a session that it never served")


def alone(tmp):
    """What needs no pair: (name, function) each."""

    def a_server_starts_without_its_store():
        port = free_port()
        with serve("redis://:very-secret@127.0.0.1:%d" % port) as server:
            unreachable(server)
            check(predict(server), "predict")
            until(lambda: logged(server, "session store cannot be reached"), 5, "the log says so")
            redis = Redis.__new__(Redis)
            redis.tmp, redis.port, redis.password = tmp, port, "other-secret"
            redis.start()
            with redis:
                unreachable(server)  # the password is wrong
            redis.password = "very-secret"
            redis.start()
            with redis:
                until(lambda: answers(server), 10, "chats")
            listing = subprocess.run(server.command[:3] + ["mod.ts", "list", "--port", str(server.port), "--json"], cwd=ROOT, capture_output=True, text=True, timeout=30)
            check(listing.returncode == 0, listing.stderr)
            check("secret" not in server.log(1000) + listing.stdout + listing.stderr, "the password is in the log")

    def wrong_values_are_refused_in_one_line():
        for text in ("disk", "redis://:very-secret@127.0.0.1:x"):
            server = serve(text, wait=False)
            status, _ = server.wait(60)
            until(lambda: server._found.qsize(), 5, "the end of its output")
            check(status == 2 and len(server.lines) == 1 and "--sessions" in server.lines[0] and "secret" not in server.lines[0], "%s %s" % (status, server.lines))

    def a_file_keeps_sessions_of_a_server_that_is_killed():
        with Server(FUNCTIONS, args=["--sessions", "kv:%s/sessions.db" % tmp]) as server:
            sid = unique("file")
            check(ask(server, sid, "a", "b") == ["1: a", "2: b"], "turns")
            pid = server.serving_pid()
            with Chat(server, sid) as c:
                c.say("slow 1000")
                c.piece()
                os.kill(pid, signal.SIGKILL)  # its supervisor starts another one
                check(refused(c.answer).code() is SC.UNAVAILABLE, "the killed server's stream")
            until(lambda: server.serving_pid() not in (None, pid), 20, "another process")
            check(history(server, sid) == ["a", "1: a", "b", "2: b"], "what was answered")
            check(ask(server, sid, "c") == ["4: c"], "the next turn")
            server.signal(signal.SIGTERM)
            check(server.wait(20)[0] == 0, "its end")
            check(not logged(server, "closed %s shutdown" % sid), "a shutdown ended the session")
        with Server(FUNCTIONS, args=["--sessions", "kv:%s/sessions.db" % tmp]) as server:
            check(ask(server, sid, "d") == ["5: d"], "after a restart")

    def servers_share_a_file():
        with serve("kv:%s/shared.db" % tmp) as here, serve("kv:%s/shared.db" % tmp) as there:
            turns_in_order([here, there], 8, 10)
            sid = unique("file")
            check(ask(here, sid, "a") + ask(there, sid, "b") == ["1: a", "2: b"], "turns")
            until(lambda: logged(there, "closed %s idle 2 2" % sid), IDLE_SECS + 5, "its end")
            check(not logged(here, sid) and not logged(here, "cannot be reached") and not logged(there, "cannot be reached"), "the logs")

    return [servers_share_a_file, a_server_starts_without_its_store, wrong_values_are_refused_in_one_line, a_file_keeps_sessions_of_a_server_that_is_killed]


def main(only):
    with tempfile.TemporaryDirectory() as tmp, contextlib.ExitStack() as stack:
        pair = functools.cache(lambda: Pair(stack, tmp))  # started with the first test that needs it

        def with_pair(fn):
            return lambda: fn(pair())

        def said():
            servers = pair().servers if pair.cache_info().currsize else ()
            return "".join("%s\n%s\n" % (s.address, s.log(15)) for s in servers)

        tests = [(fn.__name__, with_pair(fn)) for fn in TESTS] + [(fn.__name__, fn) for fn in alone(tmp)]
        return play(tests, only, said)


if __name__ == "__main__":
    run(main, sys.argv[1:])
