"""Ways to a server that can be cut: what is sent is lost from then on, and neither side is told."""
import selectors
import socket
import subprocess
import sys
import threading

# A bridge between two pairs of virtual cables: server == port0, port1 == client. The neighbours know each other for good,
# as they would know a router that goes on working when the cut is further away.
CABLES = """
ip link set lo up
ip link add server address 02:00:00:00:00:01 type veth peer name port0
ip link add client address 02:00:00:00:00:02 type veth peer name port1
ip link add cut type bridge
ip link set port0 master cut
ip link set port1 master cut
ip link set port0 up
ip link set port1 up
ip link set cut up
ip link set server up
ip addr add 10.99.0.1/30 dev server
ip neigh replace 10.99.0.2 lladdr 02:00:00:00:00:02 dev server nud permanent
"""
CLIENTS_END = """
ip link set lo up
ip link set client up
ip addr add 10.99.0.2/30 dev client
ip neigh replace 10.99.0.1 lladdr 02:00:00:00:00:01 dev client nud permanent
"""


def shell(script):
    subprocess.run(["sh", "-ec", script], check=True, stdin=subprocess.DEVNULL)


def isolating_command(needs=CABLES):
    """What a command is put behind to have a network of its own that it may change; None where a script cannot."""
    for options in (["-n"], ["-rn"]):  # as root, or as the root of a user namespace
        command = ["unshare"] + options
        try:
            if subprocess.run(command + ["sh", "-ec", needs], capture_output=True, timeout=30).returncode == 0:
                return command
        except OSError:
            return None
    return None


class Cables:
    """Clients in a network namespace of their own. The calling process must already be in one, by isolating_command()."""
    name = "network namespaces, and a bridge that loses a port"
    host = "10.99.0.1"

    def __init__(self):
        shell(CABLES)

    def start_clients(self, argv, port):
        """A process on the other end of the cable; its first line of input is the server's address."""
        child = start(["unshare", "-n"] + argv)
        child.stdout.readline()  # it is in its namespace
        shell("ip link set client netns %d && nsenter -t %d -n sh -ec '%s'" % (child.pid, child.pid, CLIENTS_END))
        return tell(child, "%s:%d" % (self.host, port))

    def cut(self):
        shell("ip link set port1 down")

    def mend(self):
        """The cable's far end has gone with the clients that had it."""
        shell("ip link del port1 2>/dev/null || true; ip link del server; ip link del cut\n" + CABLES)


class Proxy:
    """Clients behind a process that swallows everything, where namespaces are not allowed. Above TCP it looks the same."""
    name = "a proxy that stops passing things on (no network namespaces here)"

    def __init__(self):
        self.pairs, self.is_cut, self.port = selectors.DefaultSelector(), False, None
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        threading.Thread(target=self._accept, daemon=True).start()
        threading.Thread(target=self._relay, daemon=True).start()

    def start_clients(self, argv, port):
        self.port = port
        child = start(argv)
        child.stdout.readline()
        return tell(child, "127.0.0.1:%d" % self.listener.getsockname()[1])

    def cut(self):
        self.is_cut = True

    def mend(self):
        self.is_cut = False

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.port))
            self.pairs.register(client, selectors.EVENT_READ, server)
            self.pairs.register(server, selectors.EVENT_READ, client)

    def _relay(self):
        while True:
            for key, _ in self.pairs.select(0.05):
                if self.is_cut:
                    threading.Event().wait(0.05)
                    break
                try:
                    data = key.fileobj.recv(65536)
                    key.data.sendall(data)
                except OSError:
                    data = b""
                if not data:
                    for s in (key.fileobj, key.data):
                        self.pairs.unregister(s)
                        s.close()
                    break  # the other one may be among what was selected


def start(argv):
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sys.stderr, text=True, bufsize=1)


def tell(child, line):
    child.stdin.write(line + "\n")
    return child
