"""The OpenAPI document is valid, and a server does as it says whatever it is sent: schemathesis makes requests of it, good
and bad ones, and checks the answers; schemathesis.toml is what it runs with.

Every operation counts as a test. The last line is "N passed, N failed".
"""
import json
import os
import subprocess
import sys
import tempfile
import urllib.request

from openapi_spec_validator import validate

import suite
from servers import ROOT, Server

HERE = os.path.join(ROOT, "test", "e2e")
FUNCTIONS = os.path.join(HERE, "testdata", "schemathesis")
LIMIT_SECS = 240  # it takes 25 on two cores


def is_valid(url):
    """Whether the document is one of OpenAPI."""
    with urllib.request.urlopen(url, timeout=30) as response:
        document = json.load(response)
    try:
        validate(document)
        return True
    except Exception as error:
        print(error)
        return False


def run(url, folder):
    """What schemathesis reports; it leaves its own files in the folder."""
    report = os.path.join(folder, "report.json")
    program = os.path.join(os.path.dirname(sys.executable), "schemathesis")
    subprocess.run([program, "--no-color", "--config-file", os.path.join(HERE, "schemathesis.toml"), "run", url,
                    "--continue-on-failure", "--no-shrink", "--report", "json", "--report-json-path", report],
                   cwd=folder, timeout=LIMIT_SECS)
    with open(report) as f:
        return json.load(f)


def unhandled(server):
    """What the server's log says that it failed at itself."""
    return [line for line in server.lines if " ERROR " in line]


def main():
    with tempfile.TemporaryDirectory() as folder, Server(FUNCTIONS, args=["--http-port", "0"]) as server:
        url = server.http + "/openapi.json"
        valid = is_valid(url)
        report = run(url, folder)
        errors = unhandled(server)
    for line in errors:
        print(line)
    operations = report["operations"]
    failed = {name for failure in report["failures"] for name in failure["operations"]}
    checks = {
        "the document is valid": valid,
        "every operation was tried": report["complete"] and not report["errors"] and operations["tested"] == operations["selected"],
        "the server did not fail itself": not errors,
    }
    bad = sorted(failed) + [name for name, ok in checks.items() if not ok]
    for name in bad:
        print("FAIL %s" % name)
    passed = operations["tested"] + len(checks) - len(bad)
    print("%d passed, %d failed" % (passed, len(bad)))
    return 1 if bad or not operations["tested"] else 0


if __name__ == "__main__":
    suite.run(main)
