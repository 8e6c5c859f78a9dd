"""Fetches metrics pages from untrusted pods: deadline, size limit, no redirects, no proxies."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from headroom.adapters.pods.http_exchange import NoAnswerError
from headroom.adapters.pods.pod_connections import PodConnections, Request
from headroom.errors import PageTooLarge, ScrapeFailed

DEADLINE_S = 1.0
MAX_PAGE_BYTES = 1 << 18
"""Our server's page has 15 kB. Parsing a page of this size takes a fifth of a second."""
MAX_SENT_BYTES = 1 << 22
"""Limit for pages that are filtered by prefix: Ray's has 650 kB, a tenth of it from Serve."""
_HEADERS = (
    "Accept: text/plain;version=0.0.4\r\nAccept-Encoding: identity\r\nUser-Agent: headroom\r\n"
)


class PodScraper:
    """Scrapes over pooled connections. Use as an async context manager."""

    def __init__(self, deadline_s: float = DEADLINE_S) -> None:
        self._deadline_s = deadline_s
        self._connections = PodConnections()

    async def __aenter__(self) -> Self:
        """Open no connection yet."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close idle connections."""
        self._connections.close()

    async def scrape(self, url: str, prefix: str = "", most_bytes: int = MAX_PAGE_BYTES) -> str:
        """Fetch one page; with a prefix, keep only the lines that begin with it.

        Raises ScrapeFailed unless it is a 200 with a bounded UTF-8 body in time; PageTooLarge if
        more than `most_bytes` would be kept.
        """
        page = _Page(url, prefix.encode(), min(most_bytes, MAX_PAGE_BYTES))
        try:
            async with asyncio.timeout(self._deadline_s):
                status = await self._connections.get(Request.of(url, _HEADERS), page.take)
            if status != 200:
                raise ScrapeFailed(f"{url} returned status {status}")
            return page.text()
        except TimeoutError:
            raise ScrapeFailed(f"{url} did not answer within {self._deadline_s:g} s") from None
        except (OSError, ValueError) as error:
            raise ScrapeFailed(f"{url} {_why(error)}") from error


def _why(error: OSError | ValueError) -> str:
    """Return the error that prevented a page, in the terms of networks, not of Python."""
    if isinstance(error, ConnectionRefusedError):
        return "refused the connection: nothing listens on the port"
    if isinstance(error, NoAnswerError):
        return "closed the connection without an answer, as a port that expects TLS does"
    if isinstance(error, UnicodeDecodeError):
        return "returned a page that is not UTF-8 text"
    return f"returned no page: {error}"


class _Page:
    """Collects a page while it arrives; raises ScrapeFailed as soon as it is too large."""

    def __init__(self, url: str, prefix: bytes, kept_bytes: int) -> None:
        self._url = url
        self._prefix = prefix
        self._most_kept = kept_bytes
        self._most = MAX_SENT_BYTES if prefix else kept_bytes
        self._sent = 0
        self._kept = bytearray()
        self._rest = bytearray()
        """The last, incomplete line; it grows in place: a pod may send it in chunks of 4 bytes."""

    def take(self, chunk: bytes) -> None:
        self._sent += len(chunk)
        if self._sent > self._most:
            failed = ScrapeFailed if self._prefix else PageTooLarge
            raise failed(f"{self._url} returned more than {self._most} bytes")
        if not self._prefix:
            self._kept += chunk
            return
        whole, end, rest = chunk.rpartition(b"\n")
        self._rest += whole
        if end:
            for line in self._rest.split(b"\n"):
                if line.startswith(self._prefix):
                    self._kept += line + b"\n"
            self._rest.clear()
        self._rest += rest
        if len(self._kept) + len(self._rest) > self._most_kept:
            prefix = self._prefix.decode()
            raise PageTooLarge(
                f"{self._url} returned more than {self._most_kept} bytes in lines of {prefix}"
            )

    def text(self) -> str:
        """Return the page, including an incomplete last line, which the parser rejects."""
        return (self._kept + self._rest).decode("utf-8")
