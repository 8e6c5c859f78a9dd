"""One client's connection: when it is to end, and whom to tell if it ends before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Headers = list[tuple[bytes, bytes]]

STATE_KEY = "connection"
"""Where a request finds its connection in the ASGI state."""


class Connection:
    """Shared by all requests of one connection. HTTP/1.1 serves them one after the other."""

    __slots__ = ("answer", "on_lost", "retire_at_s")

    def __init__(self, retire_at_s: float = float("inf")) -> None:
        self.retire_at_s = retire_at_s
        """The first answer after this, on the loop's clock, closes the connection."""
        self.on_lost: Callable[[], None] | None = None
        """Called when the client leaves while it is owed an answer."""
        self.answer: Callable[[bytes, bytes, bool], bool] | None = None
        """Write a whole answer at once: its head as the wire has it, its body, whether the
        connection is to end. False where it cannot be written now. None where the server has no
        such way."""

    def lost(self) -> None:
        """The client has left."""
        if self.on_lost is not None:
            self.on_lost()


def connection_of(scope: Mapping[str, Any]) -> Connection:
    """The connection of an ASGI request; one of its own where the server tells of none."""
    connection: Connection = scope.get("state", {}).get(STATE_KEY) or Connection()
    return connection
