"""Watches pods: a LIST, then a WATCH from its version.

The API server evaluates the selector, so other pods of the cluster cost nothing. A watch that ends,
fails or becomes silent (the API server sends a bookmark every minute) restarts with a LIST, which
covers missed events, after a pause.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol
from urllib.parse import quote, urlencode

import orjson

from headroom.adapters.kept_parts import kept_parts
from headroom.adapters.kubernetes_responses import start_of_list
from headroom.adapters.restart_pause import RestartPause
from headroom.errors import AnswerTooLarge, ClusterError, Unavailable

_log = logging.getLogger(__name__)

Object = dict[str, Any]
OnList = Callable[[list[Object]], None]
OnEvent = Callable[[str, Object], None]
"""Takes ADDED, MODIFIED or DELETED, and the pod."""

LASTS_S = 300
SILENT_S = 90.0
"""Longer than the API server's interval of bookmarks."""
SHORTEST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 10.0
MAX_LINE_BYTES = 1 << 22
MOST_LISTED = 500
"""Pods per page of the list; fewer where they are large."""


class Api(Protocol):
    """The part of the API that the watch needs."""

    async def fetch(self, path: str) -> Any:
        """GET."""
        ...

    def stream(self, path: str, quiet_s: float) -> AsyncIterator[bytes]:
        """GET in pieces."""
        ...


class PodWatch:
    """Watches the pods of a selector, in one namespace or in all."""

    def __init__(self, api: Api, *, selector: str, namespace: str | None = None) -> None:
        self._api = api
        scope = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
        self._path = f"/api/v1{scope}/pods"
        self._selector = selector

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
                why = str(fault or "it ended early")
                again = _trouble(why) == last_logged
                level, last_logged = logging.DEBUG if again else logging.WARNING, _trouble(why)
                words = "the watch of pods restarts, at most %g s apart: %s"
                _log.log(level, words, LONGEST_PAUSE_S, why)
            await asyncio.sleep(pause_s)

    async def _list(self, on_list: OnList) -> str:
        found: list[Object] = []
        limit, more = MOST_LISTED, ""
        while True:
            try:
                version, pods, more = await self._page(limit, more)
            except AnswerTooLarge as error:
                if limit > 1:
                    limit = max(1, limit // 8)
                    continue
                version, pods, more = _without_items(error)
            limit = min(2 * limit, MOST_LISTED)
            found += [kept_parts("Pod", pod) for pod in pods]
            if not more:
                on_list(found)
                return version

    async def _page(self, limit: int, more: str) -> tuple[str, list[Object], str]:
        """Return version, pods and what continues the list."""
        query = {"labelSelector": self._selector, "limit": str(limit)}
        if more:
            query["continue"] = more
        answer = await self._api.fetch(f"{self._path}?{urlencode(query)}")
        if answer.status != 200:
            raise Unavailable(f"GET {self._path} returned status {answer.status}")
        try:
            listed = orjson.loads(answer.body)
            metadata, pods = listed["metadata"], listed["items"] or []
            return str(metadata["resourceVersion"]), pods, str(metadata.get("continue") or "")
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
        async for line in _lines(pieces):
            _take(line, on_event)


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines, without those above the bound: such a pod must not cost others theirs."""
    rest, dropping = b"", False
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines[1:] if dropping else lines:
            yield line
        dropping = dropping and not lines
        if dropping or len(rest) > MAX_LINE_BYTES:
            rest, dropping = b"", True


def _without_items(error: AnswerTooLarge) -> tuple[str, list[Object], str]:
    """Return version and continuation of a page whose only pod is too large.

    Any tenant can make one, of which the API server stores 1 MB and writes 6 MB. It is not listed,
    and gets no requests.
    """
    metadata = start_of_list(error.start)
    if metadata is None:
        raise error
    _log.warning("a pod of more bytes than are read is left out: %s", error)
    return str(metadata.get("resourceVersion")), [], str(metadata.get("continue") or "")


def _trouble(why: str) -> str:
    """Return what is the same at each attempt: not the version in the query."""
    return why.partition("?")[0] + why.rpartition(": ")[2]


def _take(line: bytes, on_event: OnEvent) -> None:
    try:
        event = orjson.loads(line)
        kind, pod = event["type"], event["object"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise Unavailable("an event is not JSON") from error
    if kind == "ERROR":
        raise Unavailable(f"the watch ended: {pod.get('message', pod)}")
    if kind in ("ADDED", "MODIFIED", "DELETED"):
        on_event(kind, kept_parts("Pod", pod))
