"""Memory for pages that arrive or wait to be parsed: bounded in all, shared by namespaces.

A page's size is unknown before it has arrived. So each page gets room for a little more than the
pod's last one; a page that needs more is fetched again, with room for the largest that is allowed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from headroom.controller.ports import Scraper
from headroom.errors import PageTooLarge
from headroom.fair_slots import FairSlots

ALL_BYTES = 8 << 20
"""A namespace has at most half of it: 256 usual pages, or 16 of the largest, at once. Text that is
not ASCII takes up to four bytes for one, so 32 MiB of memory."""
LARGEST_BYTES = 1 << 18
"""Our server's page has 15 kB. Parsing a page of this size takes a tenth of a second."""
USUAL_BYTES = 1 << 14
GROWTH = 1.25
REMEMBERED = 16_384
"""Pods whose page was larger than usual."""


class PageRoom:
    """Fetches pages as far as there is room."""

    def __init__(self, scraper: Scraper, all_bytes: int = ALL_BYTES) -> None:
        self._scraper = scraper
        self._bytes = FairSlots(all_bytes)
        self._large: dict[str, int] = {}
        """Size of the last page by UID of its pod."""

    @asynccontextmanager
    async def page(self, namespace: str, pod: str, url: str, prefix: str) -> AsyncIterator[str]:
        """Fetch a page and keep its room until the block ends.

        Raises ScrapeFailed.
        """
        size = min(LARGEST_BYTES, max(USUAL_BYTES, round(GROWTH * self._large.get(pod, 0))))
        text: str | None = None
        async with self._bytes.slot(namespace, size):
            try:
                text = await self._scraper.scrape(url, prefix, size)
            except PageTooLarge:
                if size == LARGEST_BYTES:
                    raise
            else:
                self._note(pod, len(text))
                yield text
        if text is not None:
            return
        async with self._bytes.slot(namespace, LARGEST_BYTES):
            text = await self._scraper.scrape(url, prefix, LARGEST_BYTES)
            self._note(pod, len(text))
            yield text

    def _note(self, pod: str, size: int) -> None:
        if size <= USUAL_BYTES / GROWTH:
            self._large.pop(pod, None)
            return
        if len(self._large) >= REMEMBERED and pod not in self._large:
            del self._large[next(iter(self._large))]
        self._large[pod] = size
