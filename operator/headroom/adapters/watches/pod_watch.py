"""Watches pods: a LIST, then a WATCH from its version.

The API server evaluates the selector, so other pods of the cluster cost nothing. A watch that ends,
fails or becomes silent (the API server sends a bookmark every minute) restarts with a LIST, which
covers missed events, after a pause: at least the one that the API server requests.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, Protocol
from urllib.parse import quote, urlencode

import orjson

from headroom.adapters.api_server.kept_parts import kept_parts
from headroom.adapters.api_server.kubernetes_responses import check_status, start_of_list
from headroom.adapters.api_server.page_sizes import PageLimit, PageSizes
from headroom.adapters.watches.restart_pause import RestartPause
from headroom.adapters.watches.waiting_events import Object, OnEvent, WaitingEvents, WatchShares
from headroom.adapters.watches.watch_lines import lines_of
from headroom.errors import AnswerTooLarge, ClusterError, Unavailable
from headroom.repeated_failures import pause_after_s

_log = logging.getLogger(__name__)

OnList = Callable[[list[Object]], None]

LASTS_S = 300
SILENT_S = 90.0
"""Longer than the API server's interval of bookmarks."""
SHORTEST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 10.0
MOST_LISTED = 500
"""Pods per page of the list, at most."""


class Api(Protocol):
    """The part of the API that the watch needs."""

    async def fetch(self, path: str, most_bytes: int = ...) -> Any:
        """GET; AnswerTooLarge above this many bytes."""
        ...

    def stream(self, path: str, quiet_s: float) -> AsyncIterator[bytes]:
        """GET in pieces."""
        ...


class PodWatch:
    """Watches the pods of a selector, in one namespace or in all."""

    def __init__(
        self,
        api: Api,
        *,
        selector: str,
        namespace: str | None = None,
        shares: WatchShares | None = None,
    ) -> None:
        """`shares` are those of all watches of the process."""
        self.namespace = namespace or ""
        self._api = api
        self._shares = shares or WatchShares()
        scope = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
        self._path = f"/api/v1{scope}/pods"
        self._selector = selector
        self._sizes = PageSizes()

    async def run(self, on_list: OnList, on_event: OnEvent) -> None:
        """Watch until cancelled."""
        loop, pause = asyncio.get_running_loop(), RestartPause(SHORTEST_PAUSE_S, LONGEST_PAUSE_S)
        last_logged = ""
        while True:
            begun_s, fault = math.inf, None  # a LIST that fails begins no watch
            try:
                version = await self._list(on_list)
                begun_s = loop.time()
                await self._watch(version, on_event)
            except ClusterError as error:
                fault = error
            pause_s = pause.after(loop.time() - begun_s)
            if fault is None and pause_s == SHORTEST_PAUSE_S:
                last_logged = ""
            else:
                why = str(fault or "the API server ended it early")
                again = _trouble(why) == last_logged
                level, last_logged = logging.DEBUG if again else logging.WARNING, _trouble(why)
                words = "the watch of pods restarts, at most %g s apart: %s"
                _log.log(level, words, LONGEST_PAUSE_S, why)
            await asyncio.sleep(pause_s if fault is None else pause_after_s(fault, pause_s))

    async def _list(self, on_list: OnList) -> str:
        found: list[Object] = []
        pages, more = self._sizes.begin(self._path, MOST_LISTED), ""
        while True:
            try:
                version, pods, more = await self._page(pages, more)
            except AnswerTooLarge as error:
                if pages.was_too_large():
                    continue
                version, pods, more = _without_items(error)
            found += pods
            if not more:
                self._sizes.ended(self._path, pages)
                on_list(found)
                return version

    async def _page(self, pages: PageLimit, more: str) -> tuple[str, list[Object], str]:
        """Return version, pods and the token that continues the list."""
        query = {"labelSelector": self._selector, "limit": str(pages.limit)}
        if more:
            query["continue"] = more
        answer = await self._api.fetch(f"{self._path}?{urlencode(query)}", pages.most_bytes)
        check_status(answer, f"GET {self._path}")
        size = len(answer.body)
        work = partial(self._parsed, answer.body)
        page = await self._shares.loop.run(self.namespace, size, work)
        pages.was_read(len(page[1]), size)
        return page

    def _parsed(self, body: bytes) -> tuple[str, list[Object], str]:
        try:
            listed = orjson.loads(body)
            metadata, pods = listed["metadata"], listed["items"] or []
            parts = [kept_parts("Pod", pod) for pod in pods]
            return str(metadata["resourceVersion"]), parts, str(metadata.get("continue") or "")
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise Unavailable(f"GET {self._path}: the response is not a list of objects") from error

    async def _watch(self, version: str, on_event: OnEvent) -> None:
        """Watch from a version until the watch ends; raise Unavailable if it must restart."""
        query = {
            "labelSelector": self._selector,
            "resourceVersion": version,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(LASTS_S),
        }
        pieces = self._api.stream(f"{self._path}?{urlencode(query)}", SILENT_S)
        try:
            async with asyncio.TaskGroup() as group:
                events = WaitingEvents(self._shares, self._read, on_event, group)
                try:
                    async for line, whole in lines_of(pieces):
                        events.take(line, whole=whole)
                finally:
                    events.close()
        except* ClusterError as errors:
            fault = errors.exceptions[0]
        else:
            return
        raise fault

    async def _read(self, namespace: str, name: str) -> bytes:
        """Return the list of one pod: it selects as the watch does, and needs no other right."""
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
        query = {"labelSelector": self._selector, "fieldSelector": f"metadata.name={name}"}
        answer = await self._api.fetch(f"{path}?{urlencode(query)}")
        check_status(answer, f"GET {path}")
        body: bytes = answer.body
        return body


def _without_items(error: AnswerTooLarge) -> tuple[str, list[Object], str]:
    """Return version and continuation of a page whose only pod is too large.

    Any tenant can make one, of which the API server stores 1 MB and writes 6 MB. It is not listed,
    and gets no requests.
    """
    metadata = start_of_list(error.start)
    if metadata is None:
        raise error
    _log.warning("a pod is left out, because its object is larger than the limit: %s", error)
    return str(metadata.get("resourceVersion")), [], str(metadata.get("continue") or "")


def _trouble(why: str) -> str:
    """Return the part of an error that all attempts share: without the version in the query."""
    return why.partition("?")[0] + why.rpartition(": ")[2]
