"""An HTTP session with untrusted servers: no cookies, proxies, redirects or compression."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self

import aiohttp

LOOKED_AT_BYTES = 4096
"""Bytes kept of a body that is too large."""


class HttpSession:
    """Base of adapters that use HTTP. Use as an async context manager."""

    def __init__(self, connections: int = 100, *, keep_alive: bool = True) -> None:
        """Allow this many connections (0: unlimited), kept alive or closed after each answer."""
        self._connections, self._keep_alive = connections, keep_alive
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Open the pool; no connection yet."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._connections, force_close=not self._keep_alive
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "headroom", "Accept-Encoding": "identity"},
            trust_env=False,
            auto_decompress=False,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close every connection."""
        assert self._session is not None
        await self._session.close()

    def request(
        self, method: str, url: str, deadline_s: float, **given: Any
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """Send a request; TimeoutError if the whole answer does not arrive in time."""
        assert self._session is not None
        timeout = aiohttp.ClientTimeout(total=deadline_s)
        return self._session.request(method, url, timeout=timeout, allow_redirects=False, **given)


class BodyTooLargeError(ValueError):
    """A body has more bytes than are read; `start` are the first of them."""

    def __init__(self, max_bytes: int, start: bytes) -> None:
        super().__init__(f"the answer must have at most {max_bytes} bytes")
        self.start = start


async def read_start(response: aiohttp.ClientResponse, kept_bytes: int, max_bytes: int) -> bytes:
    """Read the whole body and return its start; BodyTooLargeError if it exceeds `max_bytes`."""
    kept, size = bytearray(), 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        kept += chunk[: kept_bytes - len(kept)]
        if size > max_bytes:
            raise BodyTooLargeError(max_bytes, bytes(kept[:LOOKED_AT_BYTES]))
    return bytes(kept)
