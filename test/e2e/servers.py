"""Starts and ends Tensorlet servers for the suites, and finds the process that really serves."""
import glob
import json
import os
import queue
import re
import shlex
import signal
import subprocess
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIXTURES = os.path.join(ROOT, "test", "testdata", "functions")
FUNCTIONS = os.path.join(ROOT, "functions")
START_SECS = 120  # the first start of a Deno version may fetch packages


class Server:
    """One server process on a free port of 127.0.0.1, ended with the `with` block whatever happens in it."""

    def __init__(self, functions, deno=None, port=0, args=(), wait=True, run_args=(), env=None):
        """args are the server's options, run_args Deno's; env is added to ours."""
        deno = deno or os.environ.get("E2E_DENO", "deno")
        self.command = shlex.split(deno) + ["run", "-A"] + list(run_args) + ["mod.ts", functions, "--host", "127.0.0.1", "--port", str(port)] + list(args)
        self.lines, self.port, self.host, self.http = [], port, "127.0.0.1", None
        self._found, self._exited = queue.Queue(), threading.Event()
        # A session of its own: a wrapper (npx) and its children can then be ended together.
        self.proc = subprocess.Popen(self.command, cwd=ROOT, env=dict(os.environ, **(env or {})), stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        threading.Thread(target=self._read, daemon=True).start()
        if wait:
            self.ready()

    def _read(self):
        for line in self.proc.stdout:
            self.lines.append(line.rstrip("\n"))
            m = re.search(r"grpc://(\[[^\]]+\]|[^\s:/]+):(\d+)", line)
            if m:
                http = re.search(r" and (http://\S+)", line)
                self.http = http and http.group(1)
                self._found.put(int(m.group(2)))
        self._found.put(None)

    def ready(self, secs=START_SECS):
        """Waits for the address line."""
        try:
            port = self._found.get(timeout=secs)
        except queue.Empty:
            port = None
        if port is None:
            self.kill()
            raise RuntimeError("the server did not start:\n" + self.log(30))
        self.port = port
        return self

    @property
    def address(self):
        return "%s:%d" % (self.host, self.port)

    def log(self, count=40):
        return "\n".join(self.lines[-count:])

    # ------------------------------------------------------------ processes
    def tree(self):
        """The pids of the session, a wrapper's included, in the order of their starts: pids begin anew at some time."""
        found = []
        for path in glob.glob("/proc/[0-9]*/stat"):
            try:
                with open(path) as f:
                    rest = f.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(rest[3]) == self.proc.pid and rest[0] != "Z":
                found.append((int(rest[19]), int(path.split("/")[2])))
        return [pid for _, pid in sorted(found)]

    def deno_pids(self):
        out = []
        for pid in self.tree():
            try:
                if "deno" in os.path.basename(os.readlink("/proc/%d/exe" % pid)):
                    out.append(pid)
            except OSError:
                pass
        return out

    def main_pid(self):
        """The outermost deno, which is the one that a user or an orchestrator signals."""
        pids = self.deno_pids()
        return pids[0] if pids else None

    def serving_pid(self):
        """The process that holds the listening socket: behind a wrapper or a supervisor it is not the one we started."""
        return next(iter(self.serving_pids()), None)

    def listening_inodes(self):
        """Those of the sockets that listen at the port, as they are at one moment: the kernel shows a port's at once."""
        inodes = []
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            try:
                with open(table) as f:
                    for row in f.readlines()[1:]:
                        cols = row.split()
                        if cols[3] == "0A" and int(cols[1].rsplit(":", 1)[1], 16) == self.port:
                            inodes.append(cols[9])
            except OSError:
                pass
        return inodes

    def serving_pids(self):
        """Those of several, the one that was started last before the others. Looks at one process after the other: where
        they are replaced meanwhile, some may be missing."""
        sockets = {"socket:[%s]" % inode for inode in self.listening_inodes()}
        pids = []
        for pid in reversed(self.deno_pids()):
            for fd in glob.glob("/proc/%d/fd/*" % pid):
                try:
                    if os.readlink(fd) in sockets:
                        pids.append(pid)
                        break
                except OSError:
                    pass
        return pids

    def rss_mb(self, pid=None):
        with open("/proc/%d/status" % (pid or self.serving_pid())) as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) / 1024

    # ------------------------------------------------------------ ends
    def signal(self, number=signal.SIGTERM):
        os.kill(self.main_pid() or self.proc.pid, number)

    def wait(self, secs):
        """(exit status or None, seconds waited)."""
        start = time.time()
        try:
            return self.proc.wait(timeout=secs), time.time() - start
        except subprocess.TimeoutExpired:
            return None, time.time() - start

    def kill(self):
        try:
            os.killpg(self.proc.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.proc.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


class CollectingServer(Server):
    """A server that collects all its garbage when it is asked to, so that its memory is what stays."""

    def __init__(self, functions, env=None, **kw):
        self._figures = tempfile.NamedTemporaryFile("r")
        preload = "--preload=" + os.path.join(ROOT, "test", "e2e", "testdata", "collect.ts")
        super().__init__(functions, run_args=[preload], env=dict(env or {}, DENO_V8_FLAGS="--expose-gc", COLLECT_LOG=self._figures.name), **kw)

    def collect(self, secs=20):
        """(RSS, heap and what it keeps outside) after a collection, in MB; None where the server does not do it in time."""
        figures = [self._collect(pid, secs) for pid in self.serving_pids()]
        return tuple(map(sum, zip(*figures))) if figures and all(figures) else None

    def _collect(self, pid, secs):
        os.kill(pid, signal.SIGUSR2)
        stop, line = time.time() + secs, ""
        while time.time() < stop:
            line += self._figures.readline()
            if line.endswith("\n"):
                return tuple(json.loads(line))
            time.sleep(0.02)
        return None

    def kill(self):
        super().kill()
        self._figures.close()
