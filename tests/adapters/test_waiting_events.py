"""Events that take long to parse wait for their namespace's share of the loop, the newest of each.

A tenant can make a pod of 1.5 MB, and change it many times a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson
import pytest

from headroom.adapters.api_server.kubernetes_responses import Fetched
from headroom.adapters.watches.pod_watch import PodWatch
from headroom.adapters.watches.waiting_events import WatchShares
from headroom.adapters.watches.watch_lines import MAX_LINE_BYTES
from headroom.errors import AnswerTooLarge, Unavailable
from headroom.event_loop_shares import EventLoopShares
from headroom.fair_share import FairShare
from support.virtual_time import VirtualTimeLoop

LARGE = 1 << 20
PARSED_S = 0.04


def pod(namespace: str, name: str, version: int, size: int = 0) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}/{name}"}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": metadata | {"resourceVersion": str(version)},
        "long": "x" * size,
    }


class World:
    """A watch, whose large pods take CPU time that only this clock shows."""

    def __init__(self, waiting_bytes: int = 16 << 20) -> None:
        self.spent_s = 0.0
        self.shares = WatchShares(
            loop=EventLoopShares(lambda: self.spent_s), waiting=FairShare(waiting_bytes)
        )
        self.reported: list[tuple[str, str, int]] = []
        self.reported_s: list[float] = []
        self.answer: Callable[[], Awaitable[dict[str, Any] | None]] | None = None
        self.reads = 0
        self._sent = asyncio.Queue[bytes]()
        watch = PodWatch(self, selector="a=b", shares=self.shares)
        self._task = asyncio.create_task(watch.run(lambda _: None, self._on_event))

    async def fetch(self, path: str, most_bytes: int = 0) -> Any:
        items = []
        if "fieldSelector=metadata.name" in path:
            assert "labelSelector=a%3Db" in path
            assert self.answer is not None
            self.reads += 1
            found = await self.answer()
            items = [] if found is None else [found]
        body = {"metadata": {"resourceVersion": "1"}, "items": items}
        return Fetched(status=200, body=orjson.dumps(body), date="", retry_after="")

    async def stream(self, path: str, quiet_s: float) -> AsyncIterator[bytes]:
        while True:
            data = await self._sent.get()
            for at in range(0, len(data), 1 << 16):
                yield data[at : at + (1 << 16)]

    async def send(self, kind: str, one: dict[str, Any]) -> None:
        """Send an event, and let what is due happen."""
        self._sent.put_nowait(orjson.dumps({"type": kind, "object": one}) + b"\n")
        for _ in range(8):
            await asyncio.sleep(0)

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    def _on_event(self, kind: str, one: dict[str, Any]) -> None:
        metadata = one["metadata"]
        version = int(metadata.get("resourceVersion", 0))
        self.reported.append((kind, metadata["uid"], version))
        self.reported_s.append(asyncio.get_running_loop().time())
        if "large" in metadata["name"] and version:
            self.spent_s += PARSED_S

    def versions(self, uid: str) -> list[int]:
        return [version for _, one, version in self.reported if one == uid]


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def run_world() -> None:
        await scenario()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(run_world())


def test_flood_of_large_pods_delays_no_event_of_another_namespace() -> None:
    async def scenario() -> None:
        world, loop = World(), asyncio.get_running_loop()
        begun_s = loop.time()
        for version in range(1, 201):  # 20 a second, for 10 s
            await world.send("MODIFIED", pod("hostile", "large", version, LARGE))
            sent_s = loop.time()
            await world.send("MODIFIED", pod("other", "small", version))
            assert world.reported[-1] == ("MODIFIED", "other/small", version)
            assert world.reported_s[-1] == sent_s
            await asyncio.sleep(0.05)
        took_s = loop.time() - begun_s
        await asyncio.sleep(1.0)
        assert world.spent_s < 0.55 * took_s
        assert world.versions("hostile/large")[-1] == 200
        assert world.shares.waiting.held == 0
        await world.end()

    run(scenario)


def test_last_state_of_every_pod_is_reported_once() -> None:
    async def scenario() -> None:
        world = World()
        for version in range(1, 31):
            await world.send("MODIFIED", pod("a", f"large{version % 5}", version, LARGE))
        await asyncio.sleep(10.0)
        for number in range(5):
            versions = world.versions(f"a/large{number}")
            assert versions == sorted(set(versions))
            assert versions[-1] == 30 - (30 - number) % 5
        await world.end()

    run(scenario)


@pytest.mark.parametrize("size", [0, LARGE], ids=["small", "large"])
def test_deletion_is_reported_last_and_at_once(size: int) -> None:
    async def scenario() -> None:
        world = World()
        for version in (1, 2, 3):
            await world.send("MODIFIED", pod("a", "large", version, LARGE))
        await world.send("DELETED", pod("a", "large", 4, size))
        assert [one[:2] for one in world.reported][-1] == ("DELETED", "a/large")
        before = len(world.reported)
        await asyncio.sleep(10.0)
        assert len(world.reported) == before
        assert world.shares.waiting.held == 0
        await world.end()

    run(scenario)


def test_event_that_fits_the_share_is_reported_instead_of_an_older_one_that_waits() -> None:
    async def scenario() -> None:
        world = World()
        for version in (1, 2, 3):
            await world.send("MODIFIED", pod("a", "large", version, LARGE))
        await world.send("MODIFIED", pod("a", "large", 4))
        await asyncio.sleep(10.0)
        assert world.versions("a/large") == [1, 4]
        await world.end()

    run(scenario)


def test_event_without_room_is_read_again_in_its_turn() -> None:
    """Later events of the watch about an older state are not reported any more."""

    async def scenario() -> None:
        world = World(waiting_bytes=LARGE)
        attempts = iter([Unavailable("no answer"), None])

        async def answer() -> dict[str, Any]:
            if (error := next(attempts)) is not None:
                raise error
            return pod("a", "large", 7, LARGE)

        world.answer = answer
        for version in (1, 2, 3):
            await world.send("MODIFIED", pod("a", "large", version, LARGE))
        await asyncio.sleep(10.0)
        assert world.reads == 2
        assert world.versions("a/large")[-1] == 7
        await world.send("MODIFIED", pod("a", "large", 6))
        assert world.versions("a/large")[-1] == 7
        await world.send("MODIFIED", pod("a", "large", 8))
        await asyncio.sleep(10.0)
        assert world.versions("a/large")[-1] == 8
        await world.end()

    run(scenario)


def test_pod_that_changes_or_goes_while_it_is_read_is_reported_in_order() -> None:
    async def scenario() -> None:
        world, answered = World(waiting_bytes=LARGE), asyncio.Event()

        async def answer() -> dict[str, Any]:
            await answered.wait()
            return pod("a", "large", 2 + world.reads, LARGE)

        world.answer = answer
        for version in (1, 2, 3, 4):  # the last while it is read
            await world.send("MODIFIED", pod("a", "large", version, LARGE))
        answered.set()
        await asyncio.sleep(10.0)
        assert world.versions("a/large")[-2:] == [3, 4]
        answered.clear()
        await world.send("MODIFIED", pod("a", "large", 5, LARGE))
        await world.send("MODIFIED", pod("a", "large", 6, LARGE))
        await world.send("DELETED", pod("a", "large", 7, LARGE))
        answered.set()
        await asyncio.sleep(10.0)
        assert world.reported[-1][:2] == ("DELETED", "a/large")
        await world.end()

    run(scenario)


@pytest.mark.parametrize("read", [False, True])
def test_pod_that_is_too_large_to_be_read_is_left_out_as_a_list_does(read: bool) -> None:
    async def scenario() -> None:
        world = World(waiting_bytes=LARGE)

        async def answer() -> dict[str, Any]:
            raise AnswerTooLarge("the answer must have at most 4194304 bytes")

        world.answer = answer
        await world.send("MODIFIED", pod("a", "b", 1))
        await world.send("MODIFIED", pod("a", "b", 2, 2 * LARGE if read else MAX_LINE_BYTES))
        await asyncio.sleep(10.0)
        assert world.reported == [("MODIFIED", "a/b", 1), ("DELETED", "a/b", 0)]
        assert world.reads == int(read)
        await world.end()

    run(scenario)


def test_watch_that_ends_gives_back_the_room_of_what_waits() -> None:
    async def scenario() -> None:
        world = World()
        for number in range(4):
            await world.send("MODIFIED", pod("a", f"large{number}", 1, LARGE))
        assert world.shares.waiting.held > LARGE
        await world.end()
        assert world.shares.waiting.held == 0

    run(scenario)
