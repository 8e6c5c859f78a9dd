"""The list of a watch is read in pages, smaller ones where pods are large."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from headroom.adapters.api_server.kubernetes_responses import Fetched
from headroom.adapters.watches.pod_watch import PodWatch
from headroom.adapters.watches.pod_watches import PodWatches
from headroom.errors import AnswerTooLarge, Forbidden, Unavailable
from support.virtual_time import VirtualTimeLoop

PODS = 130


class Api:
    """130 pods with large annotations, of which 20 fit an answer."""

    def __init__(self) -> None:
        self.limits: list[int] = []

    async def fetch(self, path: str, most_bytes: int = 0) -> Any:
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
    assert api.limits[:3] == [32, 4, 16]


class Refusing:
    """An API server that forbids the list, and later does not answer."""

    def __init__(self) -> None:
        self.attempts = 0

    async def fetch(self, path: str, most_bytes: int = 0) -> Any:
        self.attempts += 1
        if self.attempts > 20:
            raise Unavailable(f"GET {path}&attempt={self.attempts}: no response within 6 s")
        return Fetched(status=403, body=b"", date="", retry_after="")

    async def stream(self, path: str, quiet_s: float) -> AsyncIterator[bytes]:
        raise AssertionError(path)
        yield b""


def test_watch_that_cannot_begin_logs_each_trouble_once(caplog: pytest.LogCaptureFixture) -> None:
    api = Refusing()

    async def run() -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(600.0):
                await PodWatch(api, selector="a=b").run(lambda _: None, lambda *_: None)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(run())
    assert api.attempts > 50
    assert caplog.text.count("returned status 403") == 1
    assert caplog.text.count("no response within 6 s") == 1


class OfNamespaces:
    """Two pods in each namespace, and an event for one; a namespace may be forbidden."""

    def __init__(self, forbidden: str = "") -> None:
        self.forbidden = forbidden
        self.notified = asyncio.Event()

    async def fetch(self, path: str, most_bytes: int = 0) -> Any:
        namespace = urlsplit(path).path.split("/")[4]
        if namespace == self.forbidden:
            return Fetched(status=403, body=b"{}", date="", retry_after="")
        items = [{"metadata": {"uid": f"{namespace}{at}", "name": "x"}} for at in (1, 2)]
        body = {"metadata": {"resourceVersion": "7"}, "items": items}
        return Fetched(status=200, body=json.dumps(body).encode(), date="", retry_after="")

    async def stream(self, path: str, quiet_s: float) -> AsyncIterator[bytes]:
        namespace = urlsplit(path).path.split("/")[4]
        await self.notified.wait()
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
    api.notified.set()
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
    together = PodWatches(watches, first_lists_s=0.1)
    assert together.unlisted() == {"x", "y"}
    running = asyncio.create_task(together.run(listed.put_nowait, lambda *_: None))
    pods = await asyncio.wait_for(listed.get(), 5)
    assert {pod["metadata"]["uid"] for pod in pods} == {"x1", "x2"}
    assert together.unlisted() == {"y"}
    running.cancel()


class Ending:
    """Lists no pods; each watch ends after some seconds, with a line or an error."""

    def __init__(self, lasts_s: float, line: bytes = b"", error: Exception | None = None) -> None:
        self.lasts_s, self.line, self.error = lasts_s, line, error
        self.lists = 0

    async def fetch(self, path: str, most_bytes: int = 0) -> Any:
        self.lists += 1
        body = b'{"metadata": {"resourceVersion": "7"}, "items": []}'
        return Fetched(status=200, body=body, date="", retry_after="")

    async def stream(self, path: str, quiet_s: float) -> AsyncIterator[bytes]:
        await asyncio.sleep(self.lasts_s)
        if self.error is not None:
            raise self.error
        if self.line:
            yield self.line


TOO_OLD = b'{"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}}\n'


def watch(api: Ending, for_s: float) -> None:
    """Watch pods for this long, in virtual time."""

    async def run() -> None:
        running = PodWatch(api, selector="a=b").run(lambda _: None, lambda *_: None)
        async with asyncio.timeout(for_s):
            await running

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner, pytest.raises(TimeoutError):
        runner.run(run())


@pytest.mark.parametrize(
    ("api", "lists"),
    [
        # 0.2 to 6.4 s take 12.6 s: seven LISTs; then one every 10 s until 300 s.
        (Ending(0.01), 35),
        (Ending(0.01, error=Forbidden("pods is forbidden: cannot watch")), 35),
        (Ending(0.01, line=TOO_OLD), 35),
        (Ending(5.0), 24),
        (Ending(60.0), 5),
        (Ending(60.0, line=TOO_OLD), 5),
    ],
    ids=["ends at once", "forbidden", "too old", "a proxy's 5 s", "lasts", "lasts and fails"],
)
def test_watch_restarts_ever_later_until_one_lasts(api: Ending, lists: int) -> None:
    watch(api, 300.0)
    assert api.lists == lists


class Throttling(Ending):
    """Answers 429 to every LIST."""

    async def fetch(self, path: str, most_bytes: int = 0) -> Any:
        self.lists += 1
        return Fetched(status=429, body=b"", date="", retry_after="50")


@pytest.mark.parametrize(
    ("api", "lists"),
    [(Throttling(0.0), 6), (Ending(0.01, error=Unavailable("429", retry_after_s=50.0)), 6)],
    ids=["to the list", "to the watch"],
)
def test_watch_restarts_no_sooner_than_the_api_server_requests(api: Ending, lists: int) -> None:
    watch(api, 299.0)
    assert api.lists == lists
