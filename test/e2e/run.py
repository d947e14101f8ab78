"""Runs every suite of this folder but the kill test; run.sh sets up what it needs.

    run.py [--only PREFIX] [--skip-examples] [-v]

The last line is "N passed, N failed".
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import threading

import suite
from servers import FIXTURES, FUNCTIONS, ROOT, Server

HERE = os.path.dirname(os.path.abspath(__file__))


def run(argv, limit, cwd=None, env=None):
    """Runs a program, shows what it prints as it comes, and returns (status, text)."""
    proc = subprocess.Popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    killer = threading.Timer(limit, lambda: os.killpg(proc.pid, signal.SIGKILL))
    killer.start()
    text = []
    try:
        for line in proc.stdout:
            print(line, end="", flush=True)
            text.append(line)
        return proc.wait(), "".join(text)
    finally:
        killer.cancel()
        if proc.poll() is None:
            os.killpg(proc.pid, signal.SIGKILL)
            proc.wait()


class Totals:
    passed = failed = skipped = 0

    def suite(self, name, status, text):
        m = re.search(r"^TOTAL PASS=(\d+) FAIL=(\d+) SKIP=(\d+)", text, re.M)
        if not m:
            print("FAIL %s ended with status %s before its total" % (name, status))
            self.failed += 1
            return
        self.passed += int(m.group(1))
        self.failed += int(m.group(2))
        self.skipped += int(m.group(3))

    def step(self, name, ok):
        print("%s %s" % ("PASS" if ok else "FAIL", name), flush=True)
        self.passed += ok
        self.failed += not ok


def cases(totals, args):
    with Server(FIXTURES) as server:
        options = ["--pid", str(server.serving_pid())] + (["--only", args.only] if args.only else []) + (["-v"] if args.v else [])
        for name, limit in (("give_cases.py", 600), ("contract_cases.py", 1200)):
            print("--- %s" % name, flush=True)
            totals.suite(name, *run([sys.executable, os.path.join(HERE, name), server.address] + options, limit))
        if server.proc.poll() is not None:
            totals.step("the server outlives the cases (status %s)" % server.proc.returncode, False)
            print(server.log())


def examples(totals):
    print("--- examples", flush=True)
    env = dict(os.environ, PYTHON=sys.executable)
    env.pop("PYTHONPATH", None)  # an example must do with its own stubs
    folder = os.path.join(ROOT, "examples", "python_client")
    totals.step("python_client generates its stubs", run(["./generate.sh"], 120, folder, env)[0] == 0)
    go, client = shutil.which("go"), os.path.join(ROOT, "examples", "go_client")
    if go:
        built = run(["./generate.sh"], 600, client, env)[0] == 0 and run([go, "build", "-o", "go_client", "."], 900, client, env)[0] == 0
        totals.step("go_client builds", built)
    else:
        built = False
        totals.skipped += 1
        print("SKIP go_client: go is not installed")

    with Server(FUNCTIONS) as server:
        for script in ("classify_image.py", "stream_tokens.py", "batch_digits.py", "chat.py", "resume_stream.py", "reconnect_chat.py"):
            status, _ = run([sys.executable, script, "--address", server.address], 120, folder, env)
            totals.step("python_client/" + script, status == 0)
        # Nobody listens on port 1: a client that cannot reach its server has to say so by its status.
        status, _ = run([sys.executable, "classify_image.py", "--address", "127.0.0.1:1"], 60, folder, env)
        totals.step("python_client fails without a server", status != 0)
        for mode in ("image", "tokens", "digits", "chat") if built else ():
            status, _ = run(["./go_client", "--address", server.address, mode], 120, client, env)
            totals.step("go_client " + mode, status == 0)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--only", help="case id prefix; leaves the examples out")
    ap.add_argument("--skip-examples", action="store_true")
    ap.add_argument("-v", action="store_true")
    args = ap.parse_args()
    totals = Totals()
    for part in (lambda: cases(totals, args), lambda: args.only or args.skip_examples or examples(totals)):
        try:
            part()
        except RuntimeError as error:
            totals.step(str(error), False)
    if totals.skipped:
        print("%d skipped" % totals.skipped)
    print("%d passed, %d failed" % (totals.passed, totals.failed))
    return 1 if totals.failed or not totals.passed else 0


if __name__ == "__main__":
    suite.run(main)
