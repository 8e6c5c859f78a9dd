"""Reads lists of the Kubernetes API page by page, within bounds of memory and of the event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from headroom.adapters.api_server.kubernetes_connection import KubernetesConnection
from headroom.adapters.api_server.kubernetes_responses import (
    Fetched,
    first_of_list,
    items_of,
    object_of,
    start_of_list,
)
from headroom.adapters.api_server.page_sizes import LARGEST_PAGE_BYTES, PageSizes
from headroom.adapters.http_session import LOOKED_AT_BYTES
from headroom.errors import AnswerTooLarge, Unavailable
from headroom.event_loop_shares import EventLoopShares
from headroom.fair_slots import FairSlots

Manifest = dict[str, Any]
Kept = Callable[[Manifest], Manifest | None]
"""Returns what is kept of an object; None for nothing."""

LISTS_AT_ONCE = 4
"""Pages of lists under way, 2 MiB, or 16 MiB of single objects; a namespace has at most half."""
_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Other than a list of custom resources, it begins with what continues it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Kept part of a page."""

    objects: list[Manifest]
    read: int
    """Objects that it had."""
    version: str
    more: str
    """Token that continues the list; empty at its end."""
    left_out: Manifest | None = None
    """Names the only object of the page, which is too large to be read."""


class ListPages:
    """Pages of lists over one connection."""

    def __init__(self, connection: KubernetesConnection, shares: EventLoopShares) -> None:
        self._connection = connection
        self._shares = shares
        self._lists = FairSlots(LISTS_AT_ONCE)
        self._sizes = PageSizes()

    async def read(
        self,
        path: str,
        query: dict[str, str],
        most: int,
        namespace: str | None,
        kept: Kept,
        *,
        leaves_out: bool = False,
    ) -> AsyncIterator[Page]:
        """Yield the pages of a list, of `most` objects, or of fewer where they are large.

        `kept` is called for each object while a page is parsed; what it raises ends the list. An
        object that is too large to be read is a page without objects where the list `leaves_out`
        such ones; otherwise AnswerTooLarge.
        """
        pages = self._sizes.begin(path, most)
        more: dict[str, str] = {}
        while True:
            asked = query | {"limit": str(pages.limit)} | more
            try:
                async with self._lists.slot(namespace or ""):
                    found = await self._connection.fetched(path, asked, pages.most_bytes)
                    page = await self._parsed(found, path, namespace, kept)
            except AnswerTooLarge:
                if pages.was_too_large():
                    continue
                if not leaves_out:
                    raise
                page = await self._left_out(path, asked)
            else:
                pages.was_read(page.read, len(found.body))
            yield page
            if page.more and page.more == more.get("continue"):
                raise Unavailable(f"GET {path}: the list must go on behind a page; it repeats one")
            more = {"continue": page.more}
            if not page.more:
                self._sizes.ended(path, pages)
                return

    async def _left_out(self, path: str, asked: dict[str, str]) -> Page:
        """Read the name of a page's only object, and the token that continues the list after it."""
        try:
            answer = await self._connection.fetched(path, asked, LOOKED_AT_BYTES, _METADATA_ONLY)
            start = answer.body
        except AnswerTooLarge as error:
            start = error.start
        metadata = start_of_list(start)
        if metadata is None:
            raise AnswerTooLarge(f"GET {path}: an object is too large, and its list has no start")
        return Page(
            objects=[],
            read=0,
            version=str(metadata.get("resourceVersion") or ""),
            more=str(metadata.get("continue") or ""),
            left_out=first_of_list(start),
        )

    async def _parsed(self, found: Fetched, path: str, namespace: str | None, kept: Kept) -> Page:
        """Parse a page, within its namespace's share of the event loop.

        Pages of all namespaces are the operator's own; only a large object in them waits.
        """
        work, size = partial(_page, found, path, kept), len(found.body)
        if namespace is None and size <= LARGEST_PAGE_BYTES:
            return work()
        return await self._shares.run(namespace or "", size, work)


def _page(found: Fetched, path: str, kept: Kept) -> Page:
    answer = object_of(found, f"GET {path}")
    items, metadata = items_of(answer, path), answer.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return Page(
        objects=[part for one in items if (part := kept(one)) is not None],
        read=len(items),
        version=str(metadata.get("resourceVersion") or ""),
        more=str(metadata.get("continue") or ""),
    )
