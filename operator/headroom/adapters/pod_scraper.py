"""Pages of metrics over HTTP from pods, which are not trusted.

Deadline over all, size cap, no redirects, no proxies.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

import aiohttp

from headroom.errors import ScrapeFailed

DEADLINE_S = 1.0
MAX_PAGE_BYTES = 1 << 18
"""Our server's page has 15 KB. Reading one of this size takes a fifth of a second."""
MAX_SENT_BYTES = 1 << 22
"""Of a page of which only some lines are kept: Ray's has 650 KB, of which a tenth is Serve's."""

KEPT_OPEN_S = 6.0
"""A connection has 7 kB, and is 0.1 ms of CPU to make anew: of a thousand services, each scraped
every 15 s, none is worth keeping."""


class PodScraper:
    """Scrapes over pooled connections. Use as an async context manager."""

    def __init__(self, deadline_s: float = DEADLINE_S) -> None:
        self._deadline_s = deadline_s
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Open the pool."""
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=self._deadline_s),
            # No limit in common: pods that hang would keep those that answer from being asked.
            connector=aiohttp.TCPConnector(
                limit=0, limit_per_host=2, keepalive_timeout=KEPT_OPEN_S
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept": "text/plain;version=0.0.4", "Accept-Encoding": "identity"},
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
        """Close the pool."""
        assert self._session is not None
        await self._session.close()

    async def scrape(self, url: str, prefix: str = "") -> str:
        """Fetch one page; with a prefix only its lines that begin with it.

        Raise ScrapeFailed for anything but 200 with a bounded UTF-8 body in time.
        """
        assert self._session is not None
        try:
            async with self._session.get(url, allow_redirects=False) as response:
                if response.status != 200:
                    raise ScrapeFailed(f"{url} answered {response.status}")
                page = _Page(url, prefix.encode())
                async for chunk in response.content.iter_any():
                    page.take(chunk)
                return page.text()
        except TimeoutError:
            raise ScrapeFailed(f"{url} gave no page within {self._deadline_s:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ScrapeFailed(f"{url}: {type(error).__name__}: {error}") from error


class _Page:
    """What is kept of a page while it comes; raises ScrapeFailed as soon as it is too much."""

    def __init__(self, url: str, prefix: bytes) -> None:
        self._url = url
        self._prefix = prefix
        self._most = MAX_SENT_BYTES if prefix else MAX_PAGE_BYTES
        self._sent = 0
        self._kept = bytearray()
        self._rest = b""
        """A line that has not ended yet."""

    def take(self, chunk: bytes) -> None:
        self._sent += len(chunk)
        if self._sent > self._most:
            raise ScrapeFailed(f"{self._url} gave more than {self._most} bytes")
        if not self._prefix:
            self._kept += chunk
            return
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(self._prefix):
                self._kept += line + b"\n"
        if len(self._kept) + len(self._rest) > MAX_PAGE_BYTES:
            prefix = self._prefix.decode()
            raise ScrapeFailed(
                f"{self._url} gave more than {MAX_PAGE_BYTES} bytes in lines of {prefix}"
            )

    def text(self) -> str:
        """Give it whole; a line that was cut stays at its end, for its reader to refuse."""
        return (self._kept + self._rest).decode("utf-8")
