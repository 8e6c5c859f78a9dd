"""The transport of uvicorn's requests, whose `close` is their connection's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class RequestTransport:
    """Part of a transport that a request of uvicorn uses."""

    __slots__ = ("close", "is_closing", "write")

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self.write = transport.write
        self.is_closing = transport.is_closing
        self.close = close
