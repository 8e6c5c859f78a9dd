"""The list of a watch is read in pages, smaller ones where pods are large."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

from headroom.adapters.kubernetes_responses import Fetched
from headroom.adapters.pod_watch import PodWatch, PodWatches
from headroom.errors import AnswerTooLarge

PODS = 130


class Api:
    """130 pods with large annotations, of which 20 fit an answer."""

    def __init__(self) -> None:
        self.limits: list[int] = []

    async def fetch(self, path: str) -> Any:
        query = {name: values[0] for name, values in parse_qs(urlsplit(path).query).items()}
        self.limits.append(int(query["limit"]))
        first = int(query.get("continue", "0"))
        last = min(PODS, first + self.limits[-1])
        if last - first > 20:
            raise AnswerTooLarge(f"GET {path}: the answer must have at most 8 bytes")
        notes = {"annotations": {"long": "x" * 5000}}
        items = [{"metadata": {"name": str(at)} | notes} for at in range(first, last)]
        more = {"continue": str(last)} if last < PODS else {}
        body = {"metadata": {"resourceVersion": "7", **more}, "items": items}
        return Fetched(status=200, body=json.dumps(body).encode(), date="", retry_after="")

    async def stream(self, path: str, quiet_s: float) -> AsyncIterator[bytes]:
        assert "resourceVersion=7" in path
        await asyncio.Event().wait()
        yield b""


async def test_pods_of_large_size_are_listed_whole_and_kept_small() -> None:
    api, listed = Api(), asyncio.Queue[list[dict[str, Any]]]()
    watch = PodWatch(api, selector="a=b")
    running = asyncio.create_task(watch.run(listed.put_nowait, lambda *_: None))
    pods = await asyncio.wait_for(listed.get(), 5)
    running.cancel()
    assert pods == [{"metadata": {"name": str(at), "annotations": {}}} for at in range(PODS)]
    assert api.limits[:3] == [500, 62, 7]


class OfNamespaces:
    """Two pods in each namespace, and an event for one; a namespace may be forbidden."""

    def __init__(self, forbidden: str = "") -> None:
        self.forbidden = forbidden
        self.told = asyncio.Event()

    async def fetch(self, path: str) -> Any:
        namespace = urlsplit(path).path.split("/")[4]
        if namespace == self.forbidden:
            return Fetched(status=403, body=b"{}", date="", retry_after="")
        items = [{"metadata": {"uid": f"{namespace}{at}", "name": "x"}} for at in (1, 2)]
        body = {"metadata": {"resourceVersion": "7"}, "items": items}
        return Fetched(status=200, body=json.dumps(body).encode(), date="", retry_after="")

    async def stream(self, path: str, quiet_s: float) -> AsyncIterator[bytes]:
        namespace = urlsplit(path).path.split("/")[4]
        await self.told.wait()
        pod = {"metadata": {"uid": f"{namespace}1", "name": "x"}}
        yield json.dumps({"type": "DELETED", "object": pod}).encode() + b"\n"
        await asyncio.Event().wait()


async def test_pods_of_several_namespaces_are_one_list_and_its_changes() -> None:
    api, listed = OfNamespaces(), asyncio.Queue[list[dict[str, Any]]]()
    events = asyncio.Queue[tuple[str, dict[str, Any]]]()
    watches = [PodWatch(api, selector="a=b", namespace=one) for one in "xy"]
    running = asyncio.create_task(
        PodWatches(watches).run(listed.put_nowait, lambda *event: events.put_nowait(event))
    )
    pods = await asyncio.wait_for(listed.get(), 5)
    assert {pod["metadata"]["uid"] for pod in pods} == {"x1", "x2", "y1", "y2"}
    api.told.set()
    found = [await asyncio.wait_for(events.get(), 5) for _ in "xy"]
    assert {(kind, pod["metadata"]["uid"]) for kind, pod in found} == {
        ("DELETED", "x1"),
        ("DELETED", "y1"),
    }
    assert listed.empty()
    running.cancel()


async def test_namespace_that_cannot_be_read_does_not_keep_the_pods_of_others() -> None:
    api, listed = OfNamespaces(forbidden="y"), asyncio.Queue[list[dict[str, Any]]]()
    watches = [PodWatch(api, selector="a=b", namespace=one) for one in "xy"]
    running = asyncio.create_task(
        PodWatches(watches, first_lists_s=0.1).run(listed.put_nowait, lambda *_: None)
    )
    pods = await asyncio.wait_for(listed.get(), 5)
    assert {pod["metadata"]["uid"] for pod in pods} == {"x1", "x2"}
    running.cancel()
