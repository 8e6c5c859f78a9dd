"""Requests to Envoy's admin interface, which only the containers of its pod reach."""

import socket
from http.client import HTTPConnection, HTTPException

TIMEOUT_S = 2.0


class AdminConnection(HTTPConnection):
    """A connection to an abstract socket."""

    def __init__(self, name: str) -> None:
        """Take the name as in Envoy's configuration: it begins with @."""
        super().__init__("envoy", timeout=TIMEOUT_S)
        self._name = name

    def connect(self) -> None:
        """Connect; raises OSError."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(f"\0{self._name[1:]}")


def ask(admin: str, path: str, method: str = "GET") -> bytes:
    """Return the answer of a socket, or of a host and port; raise HTTPException or OSError."""
    named = admin[0] == "@"
    connection = AdminConnection(admin) if named else HTTPConnection(admin, timeout=TIMEOUT_S)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        if answer.status != 200:
            raise HTTPException(f"{path} returned status {answer.status}: {answer.read(200)!r}")
        return answer.read()
    finally:
        connection.close()
