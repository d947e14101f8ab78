"""Rounds of h2load, whose connections end in GOAWAY, beside clients that are killed in mid-call and clients that survive.

    kill_test.py [--rounds 30] [--requests 500] [--isolation inline] [--processes 1]

Asserts after every round that the same processes still serve, and at the end that every answer of the survivors was
right, that memory stayed level, and that the server ends well. Memory is what stays after a full garbage collection
(testdata/collect.ts): between collections RSS swings by 60 MB and more. It collects in the server's own event loop, so
the functions run there as well; what workers keep is for test/isolation. The last line is "N passed, N failed".
"""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from checks import Test, first_line
from suite import run

HERE = os.path.dirname(os.path.abspath(__file__))
WARM_UP = 10  # rounds before memory counts: the heap, the code and the buffers find their size


# ---------------------------------------------------------------- the clients, each a process of its own
def channel(address):
    import grpc
    return grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)])


def victim(address, kind):
    """Gets into the middle of a call, says so, and stays there until it is killed."""
    import model_inference_pb2 as mp
    import model_inference_pb2_grpc as mpg
    stub = mpg.ModelInferenceStub(channel(address))

    def forever(first):
        yield first
        threading.Event().wait()

    if kind == "stream":
        for i, _chunk in enumerate(stub.StreamPredict(mp.PredictRequest(model_id="endless"))):
            if i == 100:
                print("in call", flush=True)  # and on: it dies while tokens are under way
    elif kind == "chat":
        for _piece in stub.ChatStream(forever(mp.UserMessage(session_id="victim-%d" % os.getpid(), content="slow 100000")), metadata=(("model-id", "talker"),)):
            print("in call", flush=True)
    else:
        call = stub.BatchPredict.future(forever(mp.FeatureVector(id="v", features=[1] * 1000)), metadata=(("model-id", "gate"),))
        print("in call", flush=True)
        call.result()


def survivor(address):
    """Calls in all four modes and checks every answer, until its standard input is closed; then prints its counts."""
    import grpc
    import inference_pb2 as ip
    import inference_pb2_grpc as ipg
    import model_inference_pb2 as mp
    import model_inference_pb2_grpc as mpg
    import numpy as np

    counts, errors, over = {"unary": 0, "stream": 0, "batch": 0, "chat": 0}, [], threading.Event()
    ch = channel(address)
    inf, mod = ipg.InferenceServiceStub(ch), mpg.ModelInferenceStub(ch)

    def unary(i):
        x = np.arange(i % 500 + 1, dtype=np.float32)
        r = inf.Predict(ip.InferenceRequest(model_name="affine", inputs=[ip.TensorData(data=x.tobytes(), shape=x.shape, dtype="float32")]), timeout=20)
        return r.outputs[0].data == (x * 2 + 10).tobytes()

    def stream(i):
        n = i % 50 + 1
        got = list(mod.StreamPredict(mp.PredictRequest(model_id="counter", max_tokens=n), timeout=20))
        return [c.token for c in got] == ["t%d" % k for k in range(n)] and [c.is_final for c in got] == [False] * (n - 1) + [True]

    def batch(i):
        n = i % 40
        r = mod.BatchPredict(iter([mp.FeatureVector(features=[k, i]) for k in range(n)]), timeout=20, metadata=(("model-id", "sum"),))
        return r.total_processed == n and [x.output_tensor[0] for x in r.results] == [k + i for k in range(n)]

    def chat(i):
        sid = "survivor-%d-%d" % (os.getpid(), i)
        got = mod.ChatStream(iter([mp.UserMessage(session_id=sid, content=w) for w in "abc"]), timeout=20, metadata=(("model-id", "parrot"),))
        return "".join(p.content for p in got) == "1: a2: b3: c"

    def work(name, call):
        i = 0
        while not over.is_set():
            i += 1
            try:
                if not call(i):
                    errors.append("%s: a wrong answer" % name)
            except grpc.RpcError as e:
                errors.append("%s: %s %s" % (name, e.code().name, e.details()))
                over.wait(0.2)  # a server that is down would fill memory with errors
            counts[name] += 1

    threads = [threading.Thread(target=work, args=(f.__name__, f)) for f in (unary, stream, batch, chat)]
    for x in threads:
        x.start()
    print("at work", flush=True)
    sys.stdin.read()
    over.set()
    for x in threads:
        x.join(30)
    print(json.dumps({"counts": counts, "errors": len(errors), "some": errors[:5], "hung": sum(x.is_alive() for x in threads)}), flush=True)
    os._exit(0)  # a call that hangs must not hold the process


def start(*args):
    return subprocess.Popen([sys.executable, os.path.abspath(__file__)] + list(args), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True)


# ---------------------------------------------------------------- the test
def h2load(address, path, body, requests, on_half):
    """Runs h2load; calls on_half when half of its requests are done. Returns how many were answered with HTTP 200."""
    proc = subprocess.Popen(["stdbuf", "-oL", "h2load", "-n", str(requests), "-c", "4", "-m", "16", "-d", body, "-H", "content-type: application/grpc",
                             "-H", "te: trailers", "http://%s%s" % (address, path)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    timer = threading.Timer(120, proc.kill)
    timer.start()
    answered, called = 0, False
    try:
        for line in proc.stdout:
            if line.startswith("progress: 50%"):
                called = True
                on_half()
            elif line.startswith("status codes:"):
                answered = int(line.split()[2])
        proc.wait()
    finally:
        timer.cancel()
    if not called:
        on_half()
    return answered


def medians(figures):
    """(after the warm-up, at the end)."""
    return statistics.median(figures[WARM_UP - 5:WARM_UP]), statistics.median(figures[-5:])


def main(args):
    from helpers import predict_bytes, request_bytes, until
    from caselib import INF, MOD, frame, tensor
    from servers import CollectingServer, FIXTURES
    import numpy as np

    test, memory = Test(), []
    with tempfile.TemporaryDirectory() as tmp, CollectingServer(FIXTURES, args=["--isolation", args.isolation, "--processes", str(args.processes)]) as server:
        calls = []
        for name, path, message in (("unary", INF + "Predict", predict_bytes("affine", tensor(np.arange(100, dtype=np.float32)))),
                                    ("stream", MOD + "StreamPredict", request_bytes("counter", max_tokens=20))):
            body = os.path.join(tmp, name)
            with open(body, "wb") as f:
                f.write(frame(0, message))
            calls.append((name, path, body))

        until(lambda: len(server.serving_pids()) == args.processes, 20, "all processes serve")
        pids = set(server.serving_pids())
        print("server %s, processes %s, %s" % (server.address, sorted(pids), " ".join(server.command[:3])), flush=True)
        survivors = [start("survivor", server.address) for _ in range(2)]
        victims = []
        try:
            for s in survivors:
                if first_line(s, 30) != "at work":
                    raise RuntimeError("a survivor did not start")
            for i in range(args.rounds):
                victims = [start("victim", server.address, ("stream", "chat", "batch")[(i + k) % 3]) for k in range(2)]
                said = [first_line(v, 30) for v in victims]

                def kill():
                    for v in victims:
                        v.kill()

                name, path, body = calls[i % 2]
                answered = h2load(server.address, path, body, args.requests, kill)
                for v in victims:
                    v.wait()
                now = set(server.serving_pids()) if server.proc.poll() is None else None
                measured = server.collect() if now == pids else None
                if measured:
                    memory.append(measured)
                test.check(measured and answered == args.requests and said == ["in call"] * 2,
                           "round %d, %s: %d of %d answered, %d clients killed in mid-call, %s%s" %
                           (i + 1, name, answered, args.requests, said.count("in call"), "RSS %d MB, heap %d MB" % measured if measured else "no memory figures",
                            "" if now == pids else ", processes %s instead of %s" % (now, pids)))
                if not measured:
                    break
        finally:
            for v in victims:
                v.kill()
            results = []
            for s in survivors:
                try:
                    results.append(json.loads(s.communicate(timeout=60)[0]))
                except (subprocess.TimeoutExpired, ValueError):
                    results.append({"counts": {}, "errors": 1, "some": ["it gave no account"], "hung": 1})
                s.kill()
        for i, r in enumerate(results):
            test.check(r["errors"] == 0 and r["hung"] == 0 and len(r["counts"]) == 4 and min(r["counts"].values()) > 0,
                       "survivor %d: %s, %d wrong%s" % (i + 1, r["counts"], r["errors"], " %s, %d hang" % (r["some"], r["hung"]) if r["errors"] or r["hung"] else ""))
        if len(memory) > WARM_UP and args.isolation == "inline":
            rss, heap = zip(*memory)
            early, late = medians(rss)
            test.check(late <= early * 1.15 + 20, "RSS is level: %d MB after %d rounds, %d MB after %d" % (early, WARM_UP, late, len(rss)))
            early, late = medians(heap)
            test.check(late <= early * 1.1 + 10, "the heap is level: %.1f MB after %d rounds, %.1f MB after %d" % (early, WARM_UP, late, len(heap)))
        alive = server.proc.poll() is None
        test.check(alive, "the server lives")
        if alive:
            began = time.time()
            server.signal(signal.SIGTERM)
            status, _took = server.wait(15)
            test.check(status == 0, "SIGTERM ends it with status %s after %.1f s" % (status, time.time() - began))
        if test.failed:
            print(server.log(40))
    print("%d passed, %d failed" % (test.passed, test.failed))
    return 1 if test.failed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["victim"]:
        victim(sys.argv[2], sys.argv[3])
    elif sys.argv[1:2] == ["survivor"]:
        survivor(sys.argv[2])
    else:
        parser = argparse.ArgumentParser()
        parser.add_argument("--rounds", type=int, default=30)
        parser.add_argument("--requests", type=int, default=500)
        parser.add_argument("--isolation", default="inline")
        parser.add_argument("--processes", type=int, default=1)
        run(main, parser.parse_args())
