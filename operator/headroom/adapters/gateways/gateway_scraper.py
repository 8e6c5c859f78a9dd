"""Fetches the gateways' pages of counts: overall deadline, size limit, no redirects."""

from __future__ import annotations

import aiohttp

from headroom.adapters.http_session import HttpSession
from headroom.errors import ScrapeFailed

DEADLINE_S = 2.0
MAX_PAGE_BYTES = 16 << 20
"""A service with requests needs 4 kB."""
PIECE = 1 << 16


class GatewayScraper(HttpSession):
    """Scrapes over a pooled connection to each gateway. Use as an async context manager."""

    def __init__(self, deadline_s: float = DEADLINE_S, most_bytes: int = MAX_PAGE_BYTES) -> None:
        super().__init__()
        self._deadline_s = deadline_s
        self._most_bytes = most_bytes

    async def scrape(self, url: str) -> str:
        """Fetch one page; raise ScrapeFailed unless it is a 200 with a bounded body in time."""
        try:
            async with self.request("GET", url, self._deadline_s) as response:
                if response.status != 200:
                    raise ScrapeFailed(f"{url} returned status {response.status}")
                page = bytearray()
                async for piece in response.content.iter_chunked(PIECE):
                    page += piece
                    if len(page) > self._most_bytes:
                        raise ScrapeFailed(f"{url} returned more than {self._most_bytes} bytes")
                return page.decode()
        except TimeoutError:
            raise ScrapeFailed(f"{url} did not answer within {self._deadline_s:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ScrapeFailed(f"{url}: {type(error).__name__}: {error}") from error
