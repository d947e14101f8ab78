"""What the two services promise on the wire, case by case; give_cases.py holds those from public bug reports.

    E2E_DENO=deno python3 contract_cases.py 127.0.0.1:PORT --pid PID [--only stream.] [--list]

The server must serve test/testdata/functions. Options, output and the plain call after each case are caselib.py's, which
is kept as it was given: it finds the stubs (stubs.sh) on PYTHONPATH.
"""
import sys

import cases_tensor  # noqa: F401  each of these registers its cases
import cases_v1  # noqa: F401
import cases_stream  # noqa: F401
import cases_batch  # noqa: F401
import cases_chat  # noqa: F401
import cases_http2  # noqa: F401
import cases_services  # noqa: F401
import cases_lifecycle  # noqa: F401
from caselib import main

if __name__ == "__main__":
    sys.exit(main())
