"""A way to the server that can be broken: stands in for a bad network, so that the examples can show that they survive."""
import socket
import threading


class FlakyNetwork:
    """Passes on what is sent to `address`, until it is told not to, or until a connection has had its `break_after` bytes."""

    def __init__(self, server, break_after=None):
        host, port = server.rsplit(":", 1)
        self._server = (host.strip("[]"), int(port))
        self.connections = 0  # that there have been
        self._open = []  # (client's socket, server's socket, set when frozen)
        self._break_after = break_after
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """Closes every connection; new ones work."""
        for client, server, _frozen in self._open:
            _hang_up(client)
            _hang_up(server)
        self._open = []

    def freeze(self):
        """Loses what is sent on the connections there are, and tells nobody; new ones work."""
        for _client, _server, frozen in self._open:
            frozen.set()

    def _accept(self):
        while True:
            client, _ = self._listener.accept()
            server = socket.create_connection(self._server)
            frozen = threading.Event()
            self.connections += 1
            self._open.append((client, server, frozen))
            for source, target, limit in ((client, server, None), (server, client, self._break_after)):
                threading.Thread(target=_pass_on, args=(source, target, frozen, limit), daemon=True).start()


def _pass_on(source, target, frozen, limit):
    passed = 0
    try:
        while limit is None or passed < limit:
            data = source.recv(65536 if limit is None else min(65536, limit - passed))
            if not data:
                break
            passed += len(data)
            if not frozen.is_set():
                target.sendall(data)
    except OSError:
        pass  # one of the two is closed
    _hang_up(source)
    _hang_up(target)


def _hang_up(connection):
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it is closed already
