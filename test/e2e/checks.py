"""What the suites have in common that are one long test rather than cases."""
import threading


class Test:
    """Prints a line for each check, and counts them."""
    passed = failed = 0

    def check(self, ok, text):
        print("%s %s" % ("PASS" if ok else "FAIL", text), flush=True)
        self.passed += bool(ok)
        self.failed += not ok


def first_line(proc, secs):
    """Waits for a client's line; a client that says nothing in time is killed, which ends the wait."""
    timer = threading.Timer(secs, proc.kill)
    timer.start()
    try:
        return proc.stdout.readline().strip()
    finally:
        timer.cancel()
