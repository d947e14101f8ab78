"""What the two services promise on the wire, case by case; give_cases.py holds those from public bug reports.

    E2E_DENO=deno python3 contract_cases.py 127.0.0.1:PORT --pid PID [--only stream.] [--list]

The server must serve test/testdata/functions. Options, output and the plain call after each case are caselib.py's, which
is kept as it was given: it finds the stubs (stubs.sh) on PYTHONPATH.
"""
import os
import sys

import grpc

import cases_tensor  # noqa: F401  each of these registers its cases
import cases_v1  # noqa: F401
import cases_stream  # noqa: F401
import cases_batch  # noqa: F401
import cases_chat  # noqa: F401
import cases_http2  # noqa: F401
import cases_services  # noqa: F401
import cases_lifecycle  # noqa: F401
import cases_stall  # noqa: F401
import cases_flood  # noqa: F401
import cases_isolation  # noqa: F401
import cases_call  # noqa: F401
from caselib import CASES, Fail, Skip, main

GAPS = dict(line.strip().split(": ", 1) for line in open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "gaps.txt"))
            if line.strip() and not line.startswith("#"))


def known_gap(run, reason):
    def gap(t):
        try:
            run(t)
        except (Fail, grpc.RpcError):
            raise Skip(reason)
        raise Fail("it is served now: take it out of gaps.txt")
    return gap


if __name__ == "__main__":
    unknown = set(GAPS) - {cid for cid, _kind, _stage, _run in CASES}
    if unknown:
        sys.exit("gaps.txt names cases that there are not: %s" % ", ".join(sorted(unknown)))
    CASES[:] = [(cid, kind, stage, known_gap(run, GAPS[cid]) if cid in GAPS else run) for cid, kind, stage, run in CASES]
    sys.exit(main())
