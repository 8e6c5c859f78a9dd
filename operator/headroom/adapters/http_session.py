"""A session with servers that are not trusted: no cookies, no proxies, no redirects, no packing."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self

import aiohttp


class HttpSession:
    """What an adapter asks over HTTP with. Use as an async context manager."""

    def __init__(self, connections: int = 100, *, keep_alive: bool = True) -> None:
        """Have so many connections at once, 0 for any number, closed after an answer or kept."""
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
        """Ask; TimeoutError where the whole answer is not there in time."""
        assert self._session is not None
        timeout = aiohttp.ClientTimeout(total=deadline_s)
        return self._session.request(method, url, timeout=timeout, allow_redirects=False, **given)
