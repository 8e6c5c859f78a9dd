"""Reads lists of the Kubernetes API page by page, a bounded number of pages at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from headroom.adapters.api_server.kubernetes_connection import KubernetesConnection
from headroom.errors import AnswerTooLarge
from headroom.fair_slots import FairSlots

Manifest = dict[str, Any]

LISTS_AT_ONCE = 4
"""Pages of lists under way, 16 MiB; a namespace has at most half of them."""


class ListPages:
    """Pages of lists over one connection."""

    def __init__(self, connection: KubernetesConnection) -> None:
        self._connection = connection
        self._lists = FairSlots(LISTS_AT_ONCE)

    async def read(
        self, path: str, query: dict[str, str], most: int, namespace: str | None
    ) -> AsyncIterator[Manifest]:
        """Yield the pages of a list, of `most` objects, or of fewer where they are large."""
        limit = most
        more: dict[str, str] = {}
        while True:
            try:
                async with self._lists.slot(namespace or ""):
                    answer = await self._connection.request(
                        "GET", "list", path, query=query | {"limit": str(limit)} | more
                    )
            except AnswerTooLarge:
                if limit == 1:
                    raise
                limit = max(1, limit // 8)
                continue
            yield answer
            limit = min(2 * limit, most)
            more = {"continue": str(metadata_of(answer).get("continue") or "")}
            if not more["continue"]:
                return


def metadata_of(answer: Manifest) -> Manifest:
    """Return the metadata of a list; empty if there is none."""
    metadata = answer.get("metadata")
    return metadata if isinstance(metadata, dict) else {}
