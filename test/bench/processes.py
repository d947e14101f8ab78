"""Small unary calls a second of one process and of several, interleaved: h2load with 4, 8 and 16 connections.

    processes.py [--rounds 7] [--processes 2] [--secs 2] [--connections 4 8 16]

The servers are up all the time; a round asks one after the other, in turns first. h2load needs a processor as well, so
on a machine with two the second process gets what one process and h2load leave. Only ratios within one run mean anything.
"""
import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

import numpy as np

from caselib import INF, frame, tensor
from helpers import predict_bytes, until
from servers import FIXTURES, Server


def rate(server, body, connections, secs):
    """Calls a second, for a time: with a number of calls those of the busier process would be waited for."""
    out = subprocess.run(["h2load", "-D", str(secs), "-c", str(connections), "-m", "16", "-d", body, "-H", "content-type: application/grpc",
                          "-H", "te: trailers", "http://%s%sPredict" % (server.address, INF)], capture_output=True, text=True, timeout=300).stdout
    if not re.search(r" 0 failed, 0 errored", out):
        raise RuntimeError(out)
    return float(re.search(r"([\d.]+) req/s", out).group(1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rounds", type=int, default=7)
    ap.add_argument("--processes", type=int, default=2)
    ap.add_argument("--secs", type=int, default=2)
    ap.add_argument("--connections", type=int, nargs="+", default=[4, 8, 16])
    args = ap.parse_args()
    print("level   connections   1 process   %d processes   ratio, median (least to most of %d rounds)" % (args.processes, args.rounds))
    for level in ("inline", "worker"):
        with tempfile.NamedTemporaryFile() as body, Server(FIXTURES, args=["--isolation", level]) as one, \
                Server(FIXTURES, args=["--isolation", level, "--processes", str(args.processes)]) as several:
            body.write(frame(0, predict_bytes("affine", tensor(np.arange(3, dtype=np.float32)))))
            body.flush()
            until(lambda: len(several.serving_pids()) == args.processes, 30, "all processes serve")
            for connections in args.connections:
                for server in (one, several):
                    rate(server, body.name, connections, args.secs)  # their code is compiled
                rates = {one: [], several: []}
                for i in range(args.rounds):
                    for server in (one, several) if i % 2 else (several, one):
                        rates[server].append(rate(server, body.name, connections, args.secs))
                ratios = [s / o for o, s in zip(rates[one], rates[several])]
                print("%-7s %11d %11.0f %13.0f   %.2f (%.2f to %.2f)" % (
                    level, connections, statistics.median(rates[one]), statistics.median(rates[several]), statistics.median(ratios), min(ratios), max(ratios)), flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the servers' with blocks are left
    main()
