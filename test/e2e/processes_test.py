"""A server of two processes, and clients who call all the time while its processes reload, die and are replaced.

    processes_test.py [TEST ...]

Where it may, it has a network of its own with net.ipv4.tcp_migrate_req=1, as the README recommends: without, a connection
that is made in the moment in which a process stops listening is reset.

The last line is "N passed, N failed".
"""
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback

import grpc
import model_inference_pb2 as mp
import model_inference_pb2_grpc as mpg

from caselib import check
from cut_network import isolating_command, shell
from helpers import unique, until
from servers import Server
from suite import play, run

HERE = os.path.dirname(os.path.abspath(__file__))
SC = grpc.StatusCode
MODEL = """import { defineModel } from "tensorlet";
export default defineModel({
  session: { init: () => 0 },
  %s
});
"""
# Says its word in every mode, and in which process.
BOT = MODEL % """output: { dtype: "float32", shape: [2] },
  predict: () => Float32Array.of(%(word)d, Deno.pid),
  async *stream(_inputs, ctx) {
    for (let i = 0; i < (ctx.maxTokens ?? 5); i++) yield "%(word)d";
  },
  async *chat(message, ctx) {
    ctx.session.state++;
    yield `${ctx.session.state}`;
  }"""
TESTS = []


def test(fn):
    TESTS.append(fn)
    return fn


def write_bot(folder, word):
    """Renamed into its place: nobody sees a half of it."""
    path = os.path.join(folder, "bot.ts")
    with open(path + ".new", "w") as f:
        f.write(BOT % {"word": word})
    os.rename(path + ".new", path)


@contextlib.contextmanager
def serve(*args):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(HERE, "testdata", "faults", "spin.ts"), folder)
        write_bot(folder, 0)
        with Server(folder, args=("--processes", "2") + args) as server:
            server.folder = folder
            until(lambda: any(" ready" in line for line in list(server.lines)), 30, "both are ready")
            yield server
            if server.proc.poll() is None:
                server.signal(signal.SIGTERM)
            status, _ = server.wait(20)
            check(status == 0, "its end: status %s\n%s" % (status, server.log()))


# ---------------------------------------------------------------- the clients
class Client:
    """One connection."""

    def __init__(self, server):
        self.channel = grpc.insecure_channel(server.address, options=[("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)])
        self.stub = mpg.ModelInferenceStub(self.channel)

    def predict(self):
        """(word, pid)."""
        return tuple(map(int, self.stub.Predict(mp.PredictRequest(model_id="bot"), timeout=20).output_tensor))

    def stream(self):
        return [c.token for c in self.stub.StreamPredict(mp.PredictRequest(model_id="bot", max_tokens=20), timeout=20) if c.token]

    def batch(self):
        items = iter([mp.FeatureVector(features=[i]) for i in range(10)])
        return self.stub.BatchPredict(items, timeout=20, metadata=(("model-id", "bot"),)).total_processed

    def turn(self, session):
        call = self.stub.ChatStream(iter([mp.UserMessage(session_id=session, content="x")]), timeout=20, metadata=(("model-id", "bot"),))
        return "".join(p.content for p in call)

    def spin(self):
        try:
            self.stub.Predict(mp.PredictRequest(model_id="spin", input_tensor=[1]), timeout=0.5)
        except grpc.RpcError as e:
            check(e.code() is SC.DEADLINE_EXCEEDED, "%s %s" % (e.code(), e.details()))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()


def connect_to(server, pid):
    """A client of that process: which one takes a connection is the kernel's choice."""
    for _ in range(200):
        client = Client(server)
        if client.predict()[1] == pid:
            return client
        client.channel.close()
    raise AssertionError("200 connections, and none of process %d" % pid)


class Load:
    """Calls in all four modes until it is left: on connections that stay, and, for `comers`, on a new one for each call.

    A session has its turns on ever new connections, wherever they lead.
    """

    def __init__(self, server, comers=True):
        self.server, self.calls, self.failures, self.over = server, 0, [], threading.Event()
        work = [self.stays, self.stays] + ([self.comes, self.chats] if comers else [])
        self.threads = [threading.Thread(target=self.guard, args=(fn,)) for fn in work]

    def guard(self, work):
        try:
            work()
        except grpc.RpcError as e:
            self.failures.append("%s: %s %s" % (work.__name__, e.code().name, e.details()))
        except Exception:
            self.failures.append(traceback.format_exc())

    def all_modes(self, client):
        word, _ = client.predict()
        check(len(set(client.stream())) == 1, "a stream of two versions")
        check(client.batch() == 10, "a batch")
        self.calls += 3
        return word

    def stays(self):
        last = 0
        with Client(self.server) as client:
            while not self.over.is_set():
                word = self.all_modes(client)
                check(word >= last, "an older version came back: %d after %d" % (word, last))
                last = word

    def comes(self):
        while not self.over.is_set():
            with Client(self.server) as client:
                self.all_modes(client)

    def chats(self):
        session, turns = unique("session"), 0
        while not self.over.is_set():
            with Client(self.server) as client:
                turns += 1
                said = client.turn(session)
                check(said == str(turns), "turn %d was the session's turn %s" % (turns, said))
                self.calls += 1

    def __enter__(self):
        for x in self.threads:
            x.start()
        return self

    def __exit__(self, kind, *_):
        self.over.set()
        for x in self.threads:
            x.join(30)
        if kind is None:
            check(not self.failures and not any(x.is_alive() for x in self.threads), "after %d calls: %s" % (self.calls, self.failures[:3]))
            check(self.calls > 20, "only %d calls" % self.calls)


class Observer:
    """Looks all the time at how many processes listen."""

    def __init__(self, server):
        self.server, self.fewest, self.over = server, 99, threading.Event()
        self.thread = threading.Thread(target=self.look)

    def look(self):
        while not self.over.is_set():
            self.fewest = min(self.fewest, len(self.server.listening_inodes()))
            time.sleep(0.005)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def words(server, pids):
    found = {}
    while len(found) < len(pids):
        with Client(server) as client:
            word, pid = client.predict()
            found[pid] = word
    check(set(found) == set(pids), "%s instead of %s" % (found, pids))
    return set(found.values())


# ---------------------------------------------------------------- the tests
@test
def both_take_connections_and_calls():
    with serve() as server:
        pids = server.serving_pids()
        check(len(pids) == 2, "%s" % pids)
        seen = []
        for _ in range(40):
            with Client(server) as client:
                seen.append(client.predict()[1])
        check(all(seen.count(pid) >= 5 for pid in pids), "40 connections: %s" % [seen.count(pid) for pid in pids])


@test
def a_reload_fails_no_call():
    with serve() as server:
        pids = server.serving_pids()
        with Load(server), Observer(server) as seen:
            for word in range(1, 6):
                write_bot(server.folder, word)
                server.signal(signal.SIGHUP)
                until(lambda: words(server, pids) == {word}, 20, "both say %d" % word)
        check(sorted(server.serving_pids()) == sorted(pids) and seen.fewest == 2, "a process was replaced, or did not listen")


@test
def what_is_broken_changes_nothing():
    with serve() as server:
        pids = server.serving_pids()
        words(server, pids)  # so that both have an instance: the file is gone then
        with Load(server):
            with open(os.path.join(server.folder, "bot.ts"), "w") as f:
                f.write("export default ((;")
            server.signal(signal.SIGHUP)
            until(lambda: sum("what was served stays" in x for x in list(server.lines)) == 2, 20, "both have tried")
        check(words(server, pids) == {0}, "what is served")


@test
def unfit_processes_are_replaced_one_after_the_other():
    with serve() as server:
        old = server.serving_pids()
        spinners = [connect_to(server, pid) for pid in old]
        with Load(server), Observer(server) as seen:
            for spinner in spinners:
                threading.Thread(target=spinner.spin).start()
            until(lambda: len(server.serving_pids()) == 2 and not set(server.serving_pids()) & set(old), 40, "both are replaced")
        check(seen.fewest >= 2, "only %d listened for a while" % seen.fewest)
        for spinner in spinners:
            spinner.channel.close()


@test
def one_that_is_killed_takes_only_its_own_calls():
    with serve() as server:
        pids = server.serving_pids()
        clients = {pid: connect_to(server, pid) for pid in pids}
        for victim in pids:
            (survivor,) = set(server.serving_pids()) - {victim}
            client = clients.get(survivor) or connect_to(server, survivor)
            calls, over, wrong = [0], threading.Event(), []

            def work():
                while not over.is_set():
                    try:
                        check(client.predict() == (0, survivor), "another process answered")
                        calls[0] += 1
                    except Exception as e:
                        return wrong.append(repr(e))

            thread = threading.Thread(target=work)
            thread.start()
            session = unique("survivor")
            with connect_to(server, victim) as there:
                check(there.turn(session) == "1", "a turn there")
                there.batch()  # meanwhile it gives back its lease, which would hold the session for 10 s
            os.kill(victim, signal.SIGKILL)
            check(client.turn(session) == "2", "the next turn elsewhere")
            until(lambda: len(server.serving_pids()) == 2 and victim not in server.serving_pids(), 20, "it is replaced")
            over.set()
            thread.join()
            check(not wrong and calls[0] > 5, "%d calls, %s" % (calls[0], wrong))


@test
def a_shutdown_finishes_the_calls_of_both():
    with serve() as server:
        clients = [connect_to(server, pid) for pid in server.serving_pids()]
        streams = [c.stub.StreamPredict(mp.PredictRequest(model_id="bot", max_tokens=3000), timeout=20) for c in clients]
        for stream in streams:
            next(stream)
        server.signal(signal.SIGTERM)
        for stream in streams:
            check(sum(1 for _ in stream) == 2999, "a stream was cut short")
        status, took = server.wait(20)
        check(status == 0 and took < 10, "status %s after %.1f s" % (status, took))
        for client in clients:
            client.channel.close()


MIGRATING = "ip link set lo up; echo 1 >/proc/sys/net/ipv4/tcp_migrate_req"


def in_own_network():
    """Starts this program anew in such a network, or sets that up if it is there; unless it may not."""
    if os.environ.pop("E2E_IN_OWN_NETWORK", None):
        return shell(MIGRATING)
    command = isolating_command(MIGRATING)
    if command is None:
        return print("no network of its own here", flush=True)
    os.environ["E2E_IN_OWN_NETWORK"] = "1"
    os.execvp(command[0], command + [sys.executable] + sys.argv)


if __name__ == "__main__":
    in_own_network()
    run(play, [(fn.__name__, fn) for fn in TESTS], sys.argv[1:])
