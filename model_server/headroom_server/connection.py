"""State of one client connection: its maximum age and what to do if the client disconnects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Headers = list[tuple[bytes, bytes]]

STATE_KEY = "connection"
"""Key of the connection in the ASGI state."""


class Connection:
    """Shared by all requests of one connection; HTTP/1.1 serves them one after the other."""

    __slots__ = ("answer", "client", "gone", "on_lost", "retire_at_s", "stream")

    def __init__(self, retire_at_s: float = float("inf"), client: str = "") -> None:
        self.retire_at_s = retire_at_s
        """The first response after this time, on the loop's clock, closes the connection."""
        self.client = client
        """The client's address."""
        self.gone = False
        """Whether the client has disconnected."""
        self.on_lost: Callable[[], None] | None = None
        """Called when the client disconnects while a response is pending."""
        self.answer: Callable[[bytes, bytes, bool], bool] | None = None
        """Writes a whole response: head, body, and whether to close the connection. Returns False
        if it cannot be written now. None if the server does not support it."""
        self.stream: Callable[[bytes, bool], Any] | None = None
        """Returns a `ResponseStream` for the current request: its head, and whether to close the
        connection after it. None if the server does not support it."""

    def lost(self) -> None:
        """Report that the client has disconnected."""
        self.gone = True
        if self.on_lost is not None:
            self.on_lost()


def connection_of(scope: Mapping[str, Any]) -> Connection:
    """Return the connection of an ASGI request, or a new one if the server provides none."""
    connection: Connection = scope.get("state", {}).get(STATE_KEY) or Connection()
    return connection
