"""Drains the gateway before its container stops: closes idle connections, waits for requests.

New connections go to the other gateways as soon as the pod terminates.
"""

import re
import socket
import sys
import time
from http.client import HTTPConnection, HTTPException

ADMIN = "@headroom-admin"
ENDPOINTS_CATCH_UP_S = 2.0
TIMEOUT_S = 25.0


class AdminConnection(HTTPConnection):
    """A connection to Envoy's admin interface, at an abstract socket of the pod."""

    def __init__(self, name: str) -> None:
        """Take the name as in Envoy's configuration: it begins with @."""
        super().__init__("envoy", timeout=2)
        self._name = name

    def connect(self) -> None:
        """Connect; raises OSError."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(f"\0{self._name[1:]}")


def ask(admin: str, path: str, method: str = "GET") -> str:
    """Send a request to Envoy's admin interface; raise HTTPException or OSError."""
    connection = AdminConnection(admin)
    try:
        connection.request(method, path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def main(admin: str = ADMIN) -> None:
    """Return when no request is in flight, or after the timeout."""
    until_s = time.monotonic() + TIMEOUT_S
    try:
        time.sleep(ENDPOINTS_CATCH_UP_S)
        ask(admin, "/drain_listeners?graceful&skip_exit", "POST")
        while time.monotonic() < until_s:
            page = ask(admin, r"/stats?filter=^http\.(?!admin|ops).*downstream_cx_active$")
            if not any(int(number) for number in re.findall(r": (\d+)$", page, re.MULTILINE)):
                return
            time.sleep(0.2)
    except (HTTPException, OSError) as error:
        print(f"Envoy does not respond: {error}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
