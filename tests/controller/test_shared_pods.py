"""Many services: one LIST of pods for several ticks, and never a reason to scale."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from cluster_world import FakeClock, FakeCluster, Manifest
from controller_world import REPLICA_RPS, World, play
from headroom.api import InferenceService
from headroom.controller import pace
from headroom.controller.reads.shared_pods import SharedPods
from headroom.errors import Unavailable
from headroom.resources.names import SERVICE_LABEL
from service_world import service
from virtual_time import VirtualTimeLoop

REAL, OTHERS = 4, 20
"""Services that run, and such that wait for their target, so that there are many."""


@pytest.mark.parametrize(
    ("services", "period_s", "shared_s"),
    [(1, 2.0, 0.0), (19, 2.0, 0.0), (20, 2.0, 0.5), (100, 2.0, 0.5), (1000, 15.0, 3.75)],
)
def test_the_fewer_the_services_the_fresher_the_pods(
    services: int, period_s: float, shared_s: float
) -> None:
    assert pace.shared_for_s(services, period_s) == shared_s


class Stage:
    """Pods a1 and b1, a LIST that takes 2 ms of virtual time."""

    def __init__(self) -> None:
        self.cluster = FakeCluster(FakeClock())
        for name in "ab":
            self.add(name, f"{name}1")
        self.shared = SharedPods(self.cluster)

    def add(self, of: str, name: str) -> None:
        metadata = {"name": name, "namespace": "default", "labels": {SERVICE_LABEL: of}}
        self.cluster.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})

    async def see(self, name: str, within_s: float = 1.0) -> tuple[list[str], bool]:
        seen = await self.shared.of(_service(name), within_s)
        return [pod["metadata"]["name"] for pod in seen.pods], seen.own

    @property
    def lists(self) -> int:
        return len(self.cluster.calls)


def _service(name: str) -> InferenceService:
    return service(metadata={"name": name, "namespace": "default", "uid": name})


def on_stage(story: Callable[[Stage], Awaitable[None]]) -> None:
    async def run() -> None:
        await story(Stage())

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(run())


def test_ticks_share_a_list_until_it_is_too_old() -> None:
    async def story(stage: Stage) -> None:
        both = await asyncio.gather(stage.see("a"), stage.see("b"))
        assert list(both) == [(["a1"], True), (["b1"], False)]
        stage.add("b", "b2")
        await asyncio.sleep(0.9)
        assert await stage.see("b") == (["b1"], False)
        assert stage.lists == 1
        await asyncio.sleep(0.2)
        assert await stage.see("b") == (["b1", "b2"], True)
        assert await stage.see("c") == ([], False)
        assert stage.lists == 2

    on_stage(story)


def test_who_moves_or_was_told_of_reads_alone() -> None:
    async def story(stage: Stage) -> None:
        await stage.see("a")
        stage.shared.moves("b", moves=True)
        assert await stage.see("b") == (["b1"], True)
        stage.shared.moves("b", moves=False)
        assert await stage.see("b") == (["b1"], False)
        stage.add("b", "b2")
        stage.shared.told("b")
        assert await stage.see("b") == (["b1", "b2"], True)
        assert await stage.see("a", within_s=0.0) == (["a1"], True)

    on_stage(story)


def test_a_list_that_fails_fails_for_all_who_wait_and_is_made_again() -> None:
    async def story(stage: Stage) -> None:
        stage.cluster.fail("list_all", "Pod", Unavailable("the server is overloaded (503)"))
        found = await asyncio.gather(stage.see("a"), stage.see("b"), return_exceptions=True)
        assert [str(one) for one in found] == ["the server is overloaded (503)"] * 2
        assert await stage.see("b") == (["b1"], True)

    on_stage(story)


def test_a_tick_that_is_given_up_leaves_nobody_waiting() -> None:
    async def story(stage: Stage) -> None:
        first = asyncio.create_task(stage.see("a"))
        await asyncio.sleep(0.001)
        second = asyncio.create_task(stage.see("b"))
        third = asyncio.create_task(stage.see("b"))
        await asyncio.sleep(0.0)
        third.cancel()
        first.cancel()
        found = await asyncio.gather(first, second, third, return_exceptions=True)
        assert isinstance(found[1], Unavailable)
        assert await stage.see("b") == (["b1"], True)

    on_stage(story)


class PodLists:
    """Who asked for pods: a service by its name, or all that share a LIST."""

    ALL = "all"

    def __init__(self, world: World) -> None:
        self.asked: list[str] = []
        self._list_all = world.cluster.list_all
        world.cluster.list_all = self._listed  # type: ignore[method-assign]

    async def _listed(
        self, api_version: str, kind: str, namespace: str | None, label_selector: str = ""
    ) -> list[Manifest]:
        if kind == "Pod":
            self.asked.append(label_selector.partition("=")[2] or self.ALL)
        return await self._list_all(api_version, kind, namespace, label_selector)


def _names() -> Sequence[str]:
    return [f"s{one}" for one in range(REAL)]


def _create(world: World, **changes: Any) -> None:
    for name in _names():
        world.create(name, **changes)
    for one in range(OTHERS):
        world.create(f"other{one}", target="nowhere")


def test_among_many_who_are_at_rest_share_what_they_read() -> None:
    async def story(world: World) -> None:
        lists = PodLists(world)
        _create(world)
        await world.run_for(60.0)
        lists.asked.clear()
        decided = len(world.recorder.decisions)
        await world.run_for(10.0)
        ticks = len(world.recorder.decisions) - decided
        assert ticks >= 4 * REAL
        assert set(lists.asked) == {PodLists.ALL}
        assert len(lists.asked) <= ticks

    play(story)


def test_replicas_are_written_from_pods_that_were_read_for_it_alone() -> None:
    async def story(world: World) -> None:
        lists = PodLists(world)
        _create(world, scaling={"scaleDown": {"stabilizationWindow": "60s"}})
        await world.run_for(60.0)
        world.pods.arrivals_rps["s3"] = 4 * REPLICA_RPS
        await world.run_for(60.0)
        assert world.replicas("s3") >= 4
        await world.run_for(60.0)
        lists.asked.clear()
        world.pods.arrivals_rps["s3"] = 0.0
        while world.replicas("s3") >= 4:
            await world.run_for(0.1)
        assert lists.asked.count("s3") >= 1
        assert set(lists.asked) == {"s3", PodLists.ALL}
        assert all(world.replicas(name) == 1 for name in _names() if name != "s3")

    play(story)
