"""A response that is written piece by piece, without waiting: over a socket, or over ASGI.

A writer that ignores `paused` fills memory; it holds text back instead until `on_writable`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from headroom_server.connection import Headers

if TYPE_CHECKING:
    from starlette.types import Send

UNSENT_BYTES = 16 * 1024
"""A stream is paused above this, in the process; the kernel holds up to twice SOCKET_BYTES more."""
SOCKET_BYTES = 64 * 1024


class ResponseStream(Protocol):
    """Part of a response that the writer of its stream needs."""

    on_writable: Callable[[], None]
    """Called when `paused` has become false."""

    @property
    def paused(self) -> bool:
        """Whether the client does not read what has been written."""

    @property
    def unsent_bytes(self) -> int:
        """Bytes written and not sent."""

    def write(self, data: bytes) -> None:
        """Write a piece; the first one also writes the head."""

    def end(self, data: bytes = b"") -> None:
        """Write the last piece, and complete the response."""

    def abort(self) -> None:
        """Close the connection without completing the response."""

    async def wait(self) -> None:
        """Return when the response is complete or lost."""


def nothing() -> None:
    """Do nothing."""


class AsgiStream:
    """A response over ASGI: a task sends what was written since its last message."""

    def __init__(self, send: Send, headers: Headers) -> None:
        self.on_writable: Callable[[], None] = nothing
        self._send = send
        self._headers = headers
        self._changed = asyncio.Event()
        self._unsent = bytearray()
        self._over = self._lost = False

    @property
    def paused(self) -> bool:
        """Whether too much waits to be sent."""
        return len(self._unsent) > UNSENT_BYTES

    @property
    def unsent_bytes(self) -> int:
        """Bytes written and not passed on."""
        return len(self._unsent)

    def write(self, data: bytes) -> None:
        """Write a piece."""
        self._unsent += data
        self._changed.set()

    def end(self, data: bytes = b"") -> None:
        """Write the last piece, and complete the response."""
        self._unsent += data
        self._over = True
        self._changed.set()

    def abort(self) -> None:
        """End it as if the client had left."""
        self._unsent.clear()
        self._lost = True
        self._changed.set()

    async def wait(self) -> None:
        """Send until the response is complete."""
        started = False
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._lost:
                return
            if not started:
                started = True
                await self._send(
                    {"type": "http.response.start", "status": 200, "headers": self._headers}
                )
            body, over, was_paused = bytes(self._unsent), self._over, self.paused
            self._unsent.clear()
            await self._send({"type": "http.response.body", "body": body, "more_body": not over})
            if over:
                return
            if was_paused:
                self.on_writable()
