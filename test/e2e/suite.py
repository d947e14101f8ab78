"""How a program of this folder runs its tests, one after the other, and tells of them."""
import signal
import sys
import time
import traceback


def play(tests, only=(), said=lambda: ""):
    """Runs (name, function) pairs, those of `only` where it names any; `said` adds to a failure, what a server has said say.

    The last line is "N passed, N failed". Returns the exit status.
    """
    passed = failed = 0
    for name, fn in tests:
        if only and name not in only:
            continue
        began = time.time()
        try:
            fn()
            passed += 1
            print("PASS %s (%.1f s)" % (name, time.time() - began), flush=True)
        except Exception:
            failed += 1
            print("FAIL %s\n%s%s" % (name, traceback.format_exc(), said()), flush=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


def run(main, *args):
    """Exits with main's status. SIGTERM leaves its with blocks, so that the servers end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(*args))


def equal(got, wanted, what=""):
    assert got == wanted, "%s: got %r, wanted %r" % (what, got, wanted)
